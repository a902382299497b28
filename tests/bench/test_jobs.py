"""The jobs for small models: enough of each kind, and no job that is solved before anyone works on it."""

import pytest
from bench.jobs.job import load_jobs

JOBS = {half: load_jobs(half) for half in ("tuning", "held_out")}
ALL = [job for jobs in JOBS.values() for job in jobs]


def test_each_half_has_every_kind_and_large_folders():
    for jobs in JOBS.values():
        assert len(jobs) >= 12
        assert {job.kind for job in jobs} == {"question", "fix", "addition", "rename", "data"}
        assert any(job.filler >= 200 for job in jobs)
        assert len({job.name for job in jobs}) == len(jobs)


def test_a_third_of_the_jobs_name_no_file():
    assert sum(not job.names_file for job in ALL) * 3 >= len(ALL)


@pytest.mark.parametrize("job", ALL, ids=lambda job: job.name)
def test_untouched_folder_does_not_solve_the_job(job, tmp_path):
    job.create(tmp_path)
    assert job.failure(tmp_path, "I do not know.")


@pytest.mark.parametrize("job", [job for job in ALL if job.kind == "question"], ids=lambda job: job.name)
def test_question_fails_if_a_file_was_written(job, tmp_path):
    job.create(tmp_path)
    (tmp_path / "extra.py").write_text("x = 1\n")
    assert job.failure(tmp_path, "") == "extra.py was written"
