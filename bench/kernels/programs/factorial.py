import sys

sys.set_int_max_str_digits(0)


def run(n):
    product = 1
    for i in range(2, n + 1):
        product *= i
    total = 0
    for c in str(product):
        total += ord(c) - ord("0")
    return total
