package mask_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

// secrets contain characters that encoders change.
var secrets = []string{"correct-horse", "p@ss/w0rd+x =&<>\"'\\", "hunter2hunter2", "ünïcode-secret", "=====x=====",
	"!!!!!!!!", "a\nb\tcdefg"}

// spellings returns the secret in the forms in which programs and servers may write it.
func spellings(s string) map[string]string {
	quoted, _ := json.Marshal(s)
	out := map[string]string{
		"plain": s, "query": url.QueryEscape(s), "path": url.PathEscape(s),
		"query lower":            lowerEscapes(url.QueryEscape(s)),
		"query in a query":       url.QueryEscape(url.QueryEscape(s)),
		"query in a query lower": lowerEscapes(url.QueryEscape(url.QueryEscape(s))),
		"path with slashes":      strings.ReplaceAll(url.PathEscape(s), "%2F", "/"),
		"JSON":                   string(quoted[1 : len(quoted)-1]), "HTML": html.EscapeString(s),
		"hex": hex.EncodeToString([]byte(s)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(s)))}
	out["upper case"], out["lower case"] = strings.ToUpper(s), strings.ToLower(s)
	out["form"] = strings.ReplaceAll(s, " ", "+")
	out["JSON in JSON"] = inJSON(inJSON(s))
	out["JSON in a URL"] = url.QueryEscape(inJSON(s))
	for name, format := range map[string]string{"percent": "%%%02x", "percent upper": "%%%02X", "hex escape": `\x%02x`,
		"octal escape": `\%03o`} {
		out["each byte by "+name] = each([]byte(s), format)
	}
	for name, format := range map[string]string{"entity": "&#%d;", "hex entity": "&#x%X;", "long entity": "&#%07d;",
		"JavaScript": `\u{%x}`, "Python": `\U%08x`} {
		out["each character by "+name] = each([]rune(s), format)
	}
	var units strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&units, `\u%04x`, u)
	}
	out["each character as JSON"] = units.String()
	for name, end := range map[string]string{"lines": "\n", "lines of mail": "\r\n", "lines in JSON": `\n`} {
		for _, before := range []string{"", "u", "us"} {
			out["base64 in "+name+" behind "+
				before] = lines(base64.StdEncoding.EncodeToString([]byte(before+s+strings.Repeat("z", 40))), end)
		}
	}
	for name, e := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding,
		"raw": base64.RawStdEncoding, "raw url": base64.RawURLEncoding} {
		for _, around := range [][2]string{{"", ""}, {"u:", ""}, {"us:", ":x"}, {"user:", ":realm"}} {
			out[fmt.Sprintf("base64 %s in %q", name, around)] = e.EncodeToString([]byte(around[0] + s + around[1]))
		}
	}
	return out
}

func inJSON(s string) string {
	quoted, _ := json.Marshal(s)
	return string(quoted[1 : len(quoted)-1])
}

func each[T byte | rune](all []T, format string) string {
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

// lines splits a text into lines of eight characters.
func lines(s, end string) string {
	var b strings.Builder
	for len(s) > 8 {
		b.WriteString(s[:8] + end)
		s = s[8:]
	}
	return b.String() + s
}

func lowerEscapes(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i:], strings.ToLower(string(out[i:i+3])))
		}
	}
	return string(out)
}

// However a secret is encoded, the masked text reveals nothing of it.
func TestKnownFindsEverySpelling(t *testing.T) {
	t.Parallel()
	for _, s := range secrets {
		k := mask.NewKnown("another-secret", s)
		for name, written := range spellings(s) {
			got := k.String("before " + written + " after " + written + ".")
			if strings.Contains(got, written) || strings.Count(got, mask.Masked) < 2 ||
				!strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, ".") {
				t.Errorf("%q as %s: %q became %q", s, name, written, got)
			}
		}
	}
}

// The characters that base64 leaves around a masked secret encode other bytes only.
func TestKnownLeavesNoBitsInBase64(t *testing.T) {
	t.Parallel()
	const s = "correct-horse"
	k := mask.NewKnown(s)
	for _, around := range []string{"", "x", "xy", "xyz"} {
		got := k.String(base64.StdEncoding.EncodeToString([]byte(around + s)))
		left, _, _ := strings.Cut(got, mask.Masked)
		if want := base64.StdEncoding.EncodeToString([]byte(around))[:len(
			around)*8/6]; left != want || !strings.HasSuffix(got, mask.Masked) {
			t.Errorf("behind %q: %q, want %q and the mask", around, got, want)
		}
	}
}

func TestKnownLeavesOtherText(t *testing.T) {
	t.Parallel()
	k := mask.NewKnown("correct-horse", "short")
	for _, s := range []string{"", "correct horse", "a short text", "correct-hors", "%63orrect", `\`} {
		if got := k.String(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
	if k := mask.NewKnown("", "short"); k != nil {
		t.Error("a Known of secrets that are too short is not nil")
	}
	if got, found := (*mask.Known)(nil).Bytes([]byte("x")); string(got) != "x" || found {
		t.Error("a nil Known changed a text")
	}
}

// The last character of a JSON escape may be the first one of a secret.
func TestKnownKeepsJSON(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`"\nabcdef"`, `"\\nabcdef"`, `"\\\nabcdef"`, `"x\u006eabcdef"`} {
		got, found := mask.NewKnown("nabcdef", "eabcdef").Bytes([]byte(raw))
		if !json.Valid(got) || !found {
			t.Errorf("%s became %s", raw, got)
		}
	}
}

func FuzzKnown(f *testing.F) {
	for _, s := range secrets {
		for _, w := range spellings(s) {
			f.Add(s, "a "+w+" b")
		}
	}
	f.Fuzz(func(t *testing.T, s, text string) {
		k := mask.NewKnown(s)
		if k == nil {
			return
		}
		got := k.String(text + s + text)
		if len(s) > len(mask.Masked) && strings.Contains(got, s) {
			t.Errorf("%q is still in %q", s, got)
		}
		quoted, _ := json.Marshal(text + s)
		if out, _ := k.Bytes(quoted[1 : len(quoted)-1]); !json.Valid([]byte(`"` + string(out) + `"`)) {
			t.Errorf("%q became %q, which is no JSON", quoted, out)
		}
	})
}
