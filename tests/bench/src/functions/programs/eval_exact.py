def handler(output, expected):
    return 1 if output == expected else 0
