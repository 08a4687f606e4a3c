"""What keeps the files of the user and other machines untouched while a script is recorded.

- `network`: requests and connections to other machines;
- `trackers`, `hubs`: trackers of experiments, and the Hugging Face Hub;
- `writes`: writes of Python, where nothing else keeps them out;
- `raw_calls`: packages that call the kernel without the C library.

Writes are left to xmem-overlay wherever the system has a method for it.
"""
