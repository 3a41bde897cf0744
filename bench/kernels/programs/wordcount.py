TEXT = "The quick brown fox jumps over the lazy dog. A dog, a fox: both are quick! Is the lazy dog brown? The fox over there is not so quick."


def run(n):
    counts = {}
    for word in ((TEXT + " ") * n).split():
        word = word.strip(".,:!?").lower()
        if word:
            counts[word] = counts.get(word, 0) + 1
    words = sorted(counts, key=lambda w: (-counts[w], w))
    return ["%s=%d" % (w, counts[w]) for w in words[:5]]
