def handler(output, expected):
    return min(len(output), len(expected)) / max(len(output), len(expected))
