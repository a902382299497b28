"""How tools are called where the API's own calls are not used, or not used well: in the text of the answer."""
