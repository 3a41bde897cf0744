package tool

import (
	"io"
	"strconv"
	"strings"

	"recurgent"
)

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'u':
			if i+4 < len(s) {
				if n, err := strconv.ParseUint(s[i+1:i+5], 16, 16); err == nil {
					b.WriteRune(rune(n))
					i += 4
					continue
				}
			}
			b.WriteByte('u')
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// load returns the keys in their order, and the texts.
func load(call *recurgent.Call, ref any) ([]string, map[string]string, error) {
	in, err := call.OpenText(ref)
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, nil, err
	}
	lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	var keys []string
	texts := map[string]string{}
	for i := 0; i < len(lines); i++ {
		line := strings.TrimLeft(lines[i], " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1 && i+1 < len(lines) {
			i++
			line = line[:len(line)-1] + strings.TrimLeft(lines[i], " \t\f")
		}
		end := 0
		for end < len(line) && !strings.ContainsRune("=: \t\f", rune(line[end])) {
			if line[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end, len(line))
		key := unescape(line[:end])
		rest := strings.TrimLeft(line[end:], " \t\f")
		if rest != "" && (rest[0] == '=' || rest[0] == ':') {
			rest = strings.TrimLeft(rest[1:], " \t\f")
		}
		if _, ok := texts[key]; !ok {
			keys = append(keys, key)
		}
		texts[key] = unescape(rest)
	}
	return keys, texts, nil
}

func Run(call *recurgent.Call) (any, error) {
	keys, original, err := load(call, call.Arg(0, "original"))
	if err != nil {
		return nil, err
	}
	_, translation, err := load(call, call.Arg(1, "translation"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, k := range keys {
		if strings.TrimSpace(translation[k]) == "" {
			out[k] = original[k]
		}
	}
	return out, nil
}
