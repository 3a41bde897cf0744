def matrix(n, seed):
    return [[seed * float(i - j) * float(i + j) / float(n) for j in range(n)] for i in range(n)]


def multiply(a, b):
    n = len(a)
    c = []
    for i in range(n):
        row = []
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += a[i][k] * b[k][j]
            row.append(total)
        c.append(row)
    return c


def run(n):
    c = multiply(matrix(n, 1.0), matrix(n, 2.0))
    trace = 0.0
    for i in range(n):
        trace += c[i][i]
    return trace
