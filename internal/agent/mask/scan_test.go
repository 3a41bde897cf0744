package mask

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Pairs of secrets and texts that were made so that a secret almost occurs everywhere cost a number of steps that grows as the text does, whatever
// the secrets are.
func TestStepsGrowAsTheTextDoes(t *testing.T) {
	t.Parallel()
	thue := func(n int) string { // hashes of the windows of such a text are alike
		b := []byte("ab")
		for len(b) < n {
			for _, c := range b {
				b = append(b, 'a'+'b'-c)
			}
		}
		return string(b[:n])
	}
	for name, pair := range map[string]struct {
		secrets []string
		text    func(n int) string
	}{
		"a run and an end":       {[]string{strings.Repeat("a", 400) + "-b"}, func(n int) string { return strings.Repeat("a", n) }},
		"a beginning and a run":  {[]string{"b" + strings.Repeat("a", 400)}, func(n int) string { return strings.Repeat("a", n) }},
		"a run within":           {[]string{strings.Repeat("a", 60000)}, func(n int) string { return strings.Repeat("a", n) }},
		"many runs":              {ends(), func(n int) string { return strings.Repeat("a", n) }},
		"Thue and Morse":         {[]string{thue(4096) + "x"}, thue},
		"beginnings of escapes":  {[]string{"%%%%%%%%%%x"}, func(n int) string { return strings.Repeat("%", n) }},
		"escapes of escapes":     {[]string{"%%%%%%%%%%x"}, func(n int) string { return strings.Repeat("%25", n/3) }},
		"backslashes":            {[]string{`\\\\\\\\\\x`}, func(n int) string { return strings.Repeat(`\`, n) }},
		"ampersands":             {[]string{"&amp;&amp;&x"}, func(n int) string { return strings.Repeat("&", n/2) + strings.Repeat(";", n/2) }},
		"entities of ampersands": {[]string{"&&&&&&&&x"}, func(n int) string { return strings.Repeat("&amp;", n/5) }},
		"base64 of a run":        {[]string{strings.Repeat("i", 300) + "-b"}, func(n int) string { return strings.Repeat("aWlp", n/4) }},
		"found everywhere":       {[]string{"aaaaaa", "aaaaaaa", "aaaaaaaa"}, func(n int) string { return strings.Repeat("a", n) }},
	} {
		k := NewKnown(pair.secrets...)
		steps := func(n int) int {
			s := newScan(k, []byte(pair.text(n)))
			if !s.run() {
				t.Fatal("it ended before it was through")
			}
			return s.steps()
		}
		const n = 1 << 15
		if one, four := steps(n), steps(4*n); one > 6*n || four > 6*4*n {
			t.Errorf("%s: %d steps for %d bytes, %d for four times as many: over 6 for a byte", name, one, n, four)
		}
	}
}

// ends are secrets that are alike up to their last letters.
func ends() (all []string) {
	for i := range maxKnown {
		all = append(all, strings.Repeat("a", 100+i)+fmt.Sprint("-", i))
	}
	return all
}

// A pass over a long text ends with the call, and shows nothing of it; a short text is masked as ever.
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
}

// What is passed over holds nothing: a scan that looks at every letter finds the same places.
func TestNothingIsPassedOver(t *testing.T) {
	t.Parallel()
	secrets := []string{"correct-horse", "p@ss/w0rd+x =&<>", "ünïcode-secret", "aaaaaab", "%41%42%43"}
	k := NewKnown(secrets...)
	pieces := []string{" ", "\n", "a", "=", "==", "x", "%", "\\", "&", "&amp;", "+", "%20", "\\u0041", "é", "ß", "\xc3", "some words ", "cor", "aaaa", "%4"}
	for _, s := range secrets {
		code := base64.StdEncoding.EncodeToString([]byte("u:" + s))
		pieces = append(pieces, s, strings.ToUpper(s), url.QueryEscape(s), hex.EncodeToString([]byte(s)), code, code[:7]+"\n"+code[7:], base64.URLEncoding.EncodeToString([]byte("us:"+s+"z")))
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
