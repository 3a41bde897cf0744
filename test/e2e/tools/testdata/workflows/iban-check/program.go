package tool

import (
	"bufio"
	"math/big"
	"strings"
	"unicode"

	"recurgent"
)

// Lengths of IBANs by country.
var lengths = map[string]int{"AT": 20, "BE": 16, "CH": 21, "CZ": 24, "DE": 22, "DK": 18, "ES": 24, "FI": 18, "FR": 27, "GB": 22, "GR": 27, "HU": 28, "IE": 22, "IT": 27, "LI": 21, "LU": 20, "MT": 31, "NL": 18, "NO": 15, "PL": 28, "PT": 25, "SE": 24, "SI": 19, "SK": 24}

func valid(iban string) bool {
	if len(iban) < 15 || len(iban) > 34 {
		return false
	}
	if n, ok := lengths[iban[:2]]; ok && n != len(iban) {
		return false
	}
	var digits strings.Builder
	for _, c := range iban[4:] + iban[:4] {
		switch {
		case c >= '0' && c <= '9':
			digits.WriteRune(c)
		case c >= 'A' && c <= 'Z':
			n := int(c-'A') + 10
			digits.WriteByte(byte('0' + n/10))
			digits.WriteByte(byte('0' + n%10))
		default:
			return false
		}
	}
	n, ok := new(big.Int).SetString(digits.String(), 10)
	return ok && new(big.Int).Mod(n, big.NewInt(97)).Int64() == 1
}

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "file"))
	if err != nil {
		return nil, err
	}
	out := []map[string]any{}
	sc := bufio.NewScanner(in)
	for first := true; sc.Scan(); first = false {
		if first || strings.TrimSpace(sc.Text()) == "" {
			continue
		}
		name, iban, _ := strings.Cut(sc.Text(), "\t")
		iban = strings.ToUpper(strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return -1
			}
			return r
		}, iban))
		out = append(out, map[string]any{"name": strings.TrimSpace(name), "iban": iban, "valid": valid(iban)})
	}
	return out, sc.Err()
}
