# Holds memory until a time. A greedy call takes more until something ends it.
import time


def handler(bytes, until, greedy):
    held = [bytearray(b"\1" * bytes)]
    while time.time() * 1000 < until:
        if greedy:
            held.append(bytearray(b"\1" * (4 << 20)))
        time.sleep(0.005 if greedy else 0.05)
    return sum(len(one) for one in held)
