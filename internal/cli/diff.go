package cli

// diffLines compares by the longest common subsequence, each line behind a space, - or +. Programs are short: at most
// 64 KiB; beyond 2,000 lines a side, everything has changed.
func diffLines(a, b []string) []string {
	const most = 2000
	if len(a) > most || len(b) > most {
		return append(marked("-", a), marked("+", b)...)
	}
	var out []string
	common := commonLines(a, b)
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, " "+a[i])
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	out = append(out, marked("-", a[i:])...)
	return append(out, marked("+", b[j:])...)
}

func marked(mark string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = mark + l
	}
	return out
}

// commonLines[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
func commonLines(a, b []string) [][]int {
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}
