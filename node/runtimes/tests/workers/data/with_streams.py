"""Starts a program with connected sockets: `with_streams.py <socket> <first> <last> <program> <arguments>`."""

import os
import socket
import sys

path, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for fd in range(first, last + 1):
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(path)
    os.dup2(stream.fileno(), fd)
    stream.close()
os.execv(sys.argv[4], sys.argv[4:])
