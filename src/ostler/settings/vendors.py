"""Table of known model vendors: base URL and API key variable."""

from typing import NamedTuple

from ostler.settings.schema_models import ApiKind


class Vendor(NamedTuple):
    """The endpoint of a vendor and the environment variables that may contain its key, in order."""

    base_url: str
    key_variables: tuple[str, ...] = ()
    api_kind: ApiKind = "openai"


_SILICONFLOW_VARIABLES = ("SILICONFLOW_API_KEY", "SILICONFLOW_TOKEN")
VENDORS: dict[str, Vendor] = {
    "openai": Vendor("https://api.openai.com/v1", ("OPENAI_API_KEY",)),
    "anthropic": Vendor("https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "anthropic"),
    "openrouter": Vendor("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "siliconflow": Vendor("https://api.siliconflow.cn/v1", _SILICONFLOW_VARIABLES),
    "siliconflow-intl": Vendor("https://api.siliconflow.com/v1", _SILICONFLOW_VARIABLES),
    "dashscope": Vendor("https://dashscope.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY",)),
    "dashscope-intl": Vendor("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY",)),
    "dashscope-us": Vendor("https://dashscope-us.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY",)),
    "deepseek": Vendor("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    "groq": Vendor("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "mistral": Vendor("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "together": Vendor("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "fireworks": Vendor("https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    "cerebras": Vendor("https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    "moonshot": Vendor("https://api.moonshot.cn/v1", ("MOONSHOT_API_KEY",)),
    "xai": Vendor("https://api.x.ai/v1", ("XAI_API_KEY",)),
    "gemini": Vendor("https://generativelanguage.googleapis.com/v1beta/openai", ("GEMINI_API_KEY",)),
    "ollama": Vendor("http://localhost:11434/v1"),
    "vllm": Vendor("http://localhost:8000/v1"),
    "llamacpp": Vendor("http://localhost:8080/v1"),
    "lmstudio": Vendor("http://localhost:1234/v1"),
}


def host_of(base_url: str) -> str:
    """Return the host of a URL in lower case, or an empty string."""
    from urllib.parse import urlsplit

    try:
        return urlsplit(base_url).hostname or ""
    except ValueError:
        return ""


def vendor_for_url(base_url: str) -> Vendor | None:
    """Return the vendor of an https URL. The whole host name must match, so that keys go only to their vendor."""
    host = host_of(base_url) if base_url.lower().startswith("https://") else ""
    remote = (vendor for vendor in VENDORS.values() if vendor.key_variables)
    return next((vendor for vendor in remote if host_of(vendor.base_url) == host), None)
