"""Network of user code: every TCP connection becomes a byte stream of the server's tunnel.

A stream begins with `host:port` and a newline. Names are resolved by the server, and TLS stays end to end. The module
`socket` is patched when it is first imported, because importing it takes longer than the rest of the start.
"""

import os
import sys

NO_NETWORK = "this function has no network: the setting functions.network is off"

_is_installed = False
# Connected sockets, each for one connection.
_streams = []
_streams_at_start = 0


def install():
    """Makes the network available to this process."""
    global _is_installed, _streams_at_start
    if _is_installed:
        return
    _streams.extend(_descriptors(os.environ.get("ASSAY_STREAMS")))
    _is_installed = True
    _streams_at_start = len(_streams)
    for fd in _streams:
        os.set_inheritable(fd, False)
    if "socket" in sys.modules:
        _patch(sys.modules["socket"])
    else:
        sys.meta_path.insert(0, _PatchOnImport())


def _descriptors(text):
    if not text:
        return []
    numbers = text.split(",")
    if not all(number.isdigit() for number in numbers):
        raise ValueError(f"ASSAY_STREAMS is {text}: a list such as 10,12 is valid")
    return [int(number) for number in numbers]


class _PatchOnImport:
    """Finder that patches `socket` right after it is executed."""

    def find_spec(self, name, path=None, target=None):
        if name != "socket":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _patch(module)

        spec.loader.exec_module = exec_module
        return spec


def _patch(socket):
    import errno

    internet = (socket.AF_INET, socket.AF_INET6)
    flags = socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    tunnel = os.environ.get("ASSAY_TUNNEL")

    class TunnelSocket(socket.socket):
        """Socket that is a stream of the tunnel where an internet socket was asked for."""

        def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
            self._is_tunnel = False
            self._peer = None
            kind = socket.SOCK_STREAM if type == -1 else type & ~flags
            if fileno is None and family in (-1, *internet) and kind == socket.SOCK_STREAM:
                if tunnel:
                    super().__init__(socket.AF_UNIX, type, 0)
                else:
                    # Where sockets are inherited, none can be made but a pair, and one end takes the inherited place.
                    super().__init__(fileno=_one_of_pair())
                    if type != -1 and type & socket.SOCK_NONBLOCK:
                        self.setblocking(False)
                self._is_tunnel = True
            else:
                super().__init__(family, type, proto, fileno)

        def connect(self, address):
            if not isinstance(address, tuple):
                return super().connect(address)
            timeout = self.gettimeout()
            try:
                if tunnel:
                    # The tunnel accepts at once: nothing waits for the other side here.
                    self.settimeout(None)
                    super().connect(tunnel)
                else:
                    stream = _next_stream(errno)
                    os.dup2(stream, self.fileno(), inheritable=False)
                    os.close(stream)
                    self.settimeout(None)
                self._is_tunnel = True
                self._peer = address[:2]
                self.sendall(f"{_text(address[0])}:{int(address[1])}\n".encode())
            finally:
                self.settimeout(timeout)
            return None

        def connect_ex(self, address):
            try:
                self.connect(address)
            except OSError as error:
                return error.errno or errno.EIO
            return 0

        def bind(self, address):
            if self._is_tunnel and isinstance(address, tuple):
                message = "a function cannot listen: it has no network interface"
                raise OSError(errno.EADDRNOTAVAIL, message)
            return super().bind(address)

        def setsockopt(self, level, *arguments):
            if self.family == socket.AF_UNIX and level != socket.SOL_SOCKET:
                return None
            return super().setsockopt(level, *arguments)

        def getsockopt(self, level, *arguments):
            if self.family == socket.AF_UNIX and level != socket.SOL_SOCKET:
                return 0
            return super().getsockopt(level, *arguments)

        def getpeername(self):
            name = super().getpeername()
            # A socket that TLS made of a connected one knows only the tunnel.
            return self._peer or (("", 0) if tunnel and name == tunnel else name)

        def getsockname(self):
            name = super().getsockname()
            return ("127.0.0.1", 0) if self._is_tunnel else name

    def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
        name = _text(host) if host is not None else "localhost"
        number = _port(socket, port)
        kind = type or socket.SOCK_STREAM
        if family == socket.AF_INET6:
            return [(family, kind, socket.IPPROTO_TCP, "", (name, number, 0, 0))]
        return [(socket.AF_INET, kind, socket.IPPROTO_TCP, "", (name, number))]

    TunnelSocket.__name__ = TunnelSocket.__qualname__ = "socket"
    socket.socket = socket.SocketType = TunnelSocket
    socket.getaddrinfo = getaddrinfo
    socket.gethostbyname = _text


def _one_of_pair():
    """Returns the descriptor of a socket whose peer is closed."""
    import _socket

    one, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    other.close()
    return one.detach()


def _next_stream(errno):
    if _streams:
        return _streams.pop(0)
    if _streams_at_start == 0:
        raise OSError(errno.ENETUNREACH, NO_NETWORK)
    message = f"this function has used all of its {_streams_at_start} connections: fewer, or reused ones, are valid"
    raise OSError(errno.EMFILE, message)


def _text(host):
    return host.decode("idna") if isinstance(host, (bytes, bytearray)) else str(host)


def _port(socket, port):
    if port is None:
        return 0
    try:
        return int(port)
    except ValueError:
        return socket.getservbyname(_text(port), "tcp")
