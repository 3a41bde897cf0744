def run(n):
    parts = []
    for i in range(n):
        parts.append("row ")
        parts.append(str(i))
        parts.append(",")
        for c in range(ord("a"), ord("h") + 1):
            parts.append(chr(c))
        parts.append(',"')
        parts.append(str(i * i))
        parts.append('"\n')
    s = "".join(parts)
    return [len(s), s[-20:]]
