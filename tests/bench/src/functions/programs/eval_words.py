def handler(output, expected):
    words = set(expected.split())
    return len(words & set(output.split())) / len(words)
