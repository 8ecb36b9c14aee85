"""Train judges like demur's own: from checkouts of public repositories to a GGUF and an ONNX file.

| step | modules |
|---|---|
| read rows with labels | `sources` (public repositories), `rows` (your own) |
| make rows by rules | `changes`, `made` (from texts), `worlds` (from nothing), `spoken` |
| leave out what is evaluated | `deduplicating` |
| train, with a budget in seconds | `drawing`, `training`, `prompting`, `adapter`, `encoder` |
| write the files, and check them | `exporting` |
"""
