package mask

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// For secrets and texts constructed to have many near matches, the number of steps grows linearly with the text.
func TestStepsGrowAsTheTextDoes(t *testing.T) {
	t.Parallel()
	thue := func(n int) string { // texts whose windows have equal hashes
		b := []byte("ab")
		for len(b) < n {
			for _, c := range b {
				b = append(b, 'a'+'b'-c)
			}
		}
		return string(b[:n])
	}
	fill := func(unit string) func(n int) string {
		return func(n int) string { return strings.Repeat(unit, n/len(unit)) }
	}
	for name, pair := range map[string]struct {
		secrets []string
		text    func(n int) string
	}{
		"a run and an end":       {[]string{strings.Repeat("a", 400) + "-b"}, fill("a")},
		"a beginning and a run":  {[]string{"b" + strings.Repeat("a", 400)}, fill("a")},
		"a run within":           {[]string{strings.Repeat("a", 6000)}, fill("a")},
		"many runs":              {ends(), fill("a")},
		"Thue and Morse":         {[]string{thue(4096) + "x"}, thue},
		"beginnings of escapes":  {[]string{"%%%%%%%%%%x"}, fill("%")},
		"escapes of escapes":     {[]string{"%%%%%%%%%%x"}, fill("%25")},
		"backslashes":            {[]string{`\\\\\x`}, fill(`\`)},
		"secrets of backslashes": {[]string{`\\\\\\`}, fill(`\`)},
		"ampersands": {[]string{"&amp;&amp;&x"},
			func(n int) string { return strings.Repeat("&", n/2) + strings.Repeat(";", n/2) }},
		"entities of ampersands": {[]string{"&&&&&&&&x"}, fill("&amp;")},
		"base64 of a run":        {[]string{strings.Repeat("i", 300) + "-b"}, fill("aWlp")},
		"found everywhere":       {[]string{"aaaaaa", "aaaaaaa", "aaaaaaaa"}, fill("a")},
		"blanks":                 {[]string{"correct-horse"}, fill(" ")},
		"blanks and a beginning": {[]string{"correct-horse"},
			func(n int) string { return strings.Repeat(" ", n) + "co" }},
		"lines and beginnings": {[]string{"correct-horse"}, fill(strings.Repeat("\n", 5000) + "co")},
		"nothing of it":        {[]string{"correct-horse"}, fill("x")},
	} {
		k := NewKnown(pair.secrets...)
		linear(t, name, func(n int) int {
			s := newScan(k, []byte(pair.text(n)))
			if !s.run() {
				t.Fatal("it ended before it was through")
			}
			s.found()
			return s.steps()
		})
	}
}

// linear checks that the number of steps is linear in the length of the text.
func linear(t *testing.T, name string, steps func(n int) int) {
	t.Helper()
	const n = 1 << 16
	if one, four := steps(n), steps(4*n); four > 9*one/2 || one > 300*n {
		t.Errorf("%s: %d steps for %d bytes, %d for four times as many", name, one, n, four)
	}
}

// The same holds for the search by names, places and shapes, in texts constructed to be scanned repeatedly.
func TestStepsOfRules(t *testing.T) {
	t.Parallel()
	fill := func(unit string) func(n int) string {
		return func(n int) string { return strings.Repeat(unit, n/len(unit)) }
	}
	descending := func(name string) func(n int) string {
		return func(n int) string { // as many backslashes as nowhere behind
			b := &strings.Builder{}
			for k := int(math.Sqrt(float64(2 * n))); k > 0; k-- {
				b.WriteString(name + "=" + strings.Repeat(`\`, k) + "'\n")
			}
			return b.String()
		}
	}
	for name, text := range map[string]func(n int) string{
		"values of names":          fill("key="),
		"with colons":              fill("key:"),
		"words of names":           fill(strings.Repeat("password:", 450) + " word "),
		"words of opaque names":    fill(strings.Repeat("key=", 500) + " "),
		"objects in quotes":        fill(`"key":{`),
		"secret objects in quotes": fill(`"password":{`),
		"lists in quotes":          fill(`"key":[`),
		"masked cookies":           fill("cookie=[maskeda=b "),
		"cookies":                  fill("cookie: a=b;"),
		"masked digests":           fill("authorization: digest [masked "),
		"beginnings of tokens":     fill("eyJ-"),
		"tokens with an end":       func(n int) string { return strings.Repeat("eyJ-", n/4) + ".abc" },
		"tokens with dots":         fill("eyJ.eyJ-"),
		"unclosed quotes":          descending("password"),
		"unclosed quotes of words": descending("key"),
		"escaped quotes":           fill(`password="\"\"`),
		"parentheses":              fill("]="),
		"addresses":                fill("x://h?b=x"),
		"addresses in an address": func(n int) string {
			return "x://h?b=" + strings.Repeat("x%3A%2F%2Fh%3Fb%3D",
				n/18)
		},
		"users":                     fill("x://a@"),
		"private keys":              fill("-----BEGIN PRIVATE KEY"),
		"private keys without ends": fill("-----BEGIN PRIVATE KEY-----"),
		"schemes":                   fill("Bearer "),
		"forms of a length":         fill("AKIA-"),
		"forms":                     fill("glpat-xoxe.xox"),
		"names before blanks": func(n int) string {
			return strings.Repeat("password:", n/18) + strings.Repeat(" ",
				n/2) + "word"
		},
		"masked lists": fill(`"password":[masked`),
	} {
		linear(t, name, func(n int) int {
			p := pass{rules: Compile(Defaults())}
			p.text([]byte(text(n)))
			return p.steps
		})
		linear(t, name+" in a value", func(n int) int {
			raw, err := json.Marshal(map[string]string{"text": text(n)})
			if err != nil {
				t.Fatal(err)
			}
			p := pass{rules: Compile(Defaults())}
			p.json(raw)
			return p.steps
		})
	}
}

// ends returns secrets that differ only in their last characters.
func ends() (all []string) {
	for i := range maxKnown {
		all = append(all, strings.Repeat("a", 100+i)+fmt.Sprint("-", i))
	}
	return all
}

// A pass over a long text ends with the call and masks all of it. A short text is masked as usual.
func TestMaskingEndsWithTheCall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	k := NewKnown("correct-horse").Until(ctx)
	long := strings.Repeat("a text ", 20_000) + "correct-horse"
	if got := k.String(long); !strings.HasPrefix(got, "a text ") || strings.Contains(got, "horse") {
		t.Errorf("while the call lasts: %.40s", got)
	}
	cancel()
	if got := k.String(long); got != Masked {
		t.Errorf("after its end: %.40s", got)
	}
	if got := k.String("it is correct-horse"); got != "it is [masked]" {
		t.Errorf("a short text after its end: %s", got)
	}
	for raw, want := range map[string]string{` {"a":"` + long + `","b":["x"]}`: `{"[masked]":null}`,
		`["` + long + `",1]`: `["[masked]"]`, `"` + long + `"`: `"[masked]"`,
		`{"a":"correct-horse","b":1}`: `{"a":"[masked]","b":1}`} {
		if got, found := k.JSON(json.RawMessage(raw)); !found || string(got) != want {
			t.Errorf("a value after its end: %.80s, want %s", got, want)
		}
	}
}

// Skipping misses nothing: a scan of every byte finds the same places.
func TestNothingIsPassedOver(t *testing.T) {
	t.Parallel()
	secrets := []string{"correct-horse", "p@ss/w0rd+x =&<>", "ünïcode-secret", "aaaaaab", "%41%42%43"}
	k := NewKnown(secrets...)
	pieces := []string{" ", "\n", "a", "=", "==", "x", "%", "\\", "&", "&amp;", "+", "%20", "\\u0041", "é", "ß", "\xc3",
		"some words ", "cor", "aaaa", "%4"}
	for _, s := range secrets {
		code := base64.StdEncoding.EncodeToString([]byte("u:" + s))
		pieces = append(pieces, s, strings.ToUpper(s), url.QueryEscape(s), hex.EncodeToString([]byte(s)), code,
			code[:7]+"\n"+code[7:], base64.URLEncoding.EncodeToString([]byte("us:"+s+"z")))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var text strings.Builder
		for range 1 + random.IntN(8) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		quick, slow := newScan(k, []byte(text.String())), newScan(k, []byte(text.String()))
		slow.everyLetter = true
		quick.run()
		slow.run()
		if got, want := quick.found(), slow.found(); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", text.String(), got, want)
		}
	}
}
