package tool

import (
	"encoding/csv"
	"io"
	"slices"
	"strings"

	"recurgent"
)

type entry struct{ name, org, tel string }

// unescape reads the escapes of vCard.
func unescape(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\,`, ",", `\;`, ";", `\n`, " ", `\N`, " ").Replace(s)
}

// firstPart is what stands before the first semicolon that is not escaped.
func firstPart(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if s[i] == ';' {
			return s[:i]
		}
	}
	return s
}

var special = map[rune]byte{'€': 0x80, '‚': 0x82, '„': 0x84, '…': 0x85, '‘': 0x91, '’': 0x92, '“': 0x93, '”': 0x94, '–': 0x96, '—': 0x97, 'Š': 0x8a, 'Ž': 0x8e, 'š': 0x9a, 'ž': 0x9e, 'Ÿ': 0x9f, 'Œ': 0x8c, 'œ': 0x9c}

// latin encodes text in windows-1252.
func latin(s string) []byte {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		b, ok := special[r]
		switch {
		case ok:
			out = append(out, b)
		case r < 0x80 || r >= 0xa0 && r <= 0xff:
			out = append(out, byte(r))
		default:
			out = append(out, '?')
		}
	}
	return out
}

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "contacts"))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	text = strings.NewReplacer("\n ", "", "\n\t", "").Replace(text)
	var entries []entry
	var name, org string
	var tels []string
	for _, line := range strings.Split(text, "\n") {
		head, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		prop, _, _ := strings.Cut(strings.ToUpper(head), ";")
		if i := strings.LastIndex(prop, "."); i >= 0 {
			prop = prop[i+1:]
		}
		switch prop {
		case "BEGIN":
			name, org, tels = "", "", nil
		case "FN":
			name = strings.TrimSpace(unescape(value))
		case "ORG":
			org = strings.TrimSpace(unescape(firstPart(value)))
		case "TEL":
			tels = append(tels, strings.TrimSpace(strings.TrimPrefix(unescape(value), "tel:")))
		case "END":
			for _, tel := range tels {
				entries = append(entries, entry{name, org, tel})
			}
		}
	}
	key := func(s string) string {
		return strings.NewReplacer("ä", "a", "ö", "o", "ü", "u", "ß", "ss").Replace(strings.ToLower(s))
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return strings.Compare(key(a.name), key(b.name)) })
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Comma = ';'
	w.UseCRLF = true
	rows := [][]string{{"Name", "Firma", "Telefon"}}
	for _, e := range entries {
		rows = append(rows, []string{e.name, e.org, e.tel})
	}
	if err := w.WriteAll(rows); err != nil {
		return nil, err
	}
	f, err := call.Create("telefon.csv", "text/csv; charset=windows-1252")
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(latin(b.String())); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return map[string]any{"numbers": len(entries), "file": f.Ref()}, nil
}
