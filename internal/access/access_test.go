package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

const secret = "0123456789abcdef"

func TestScopes(t *testing.T) {
	t.Parallel()
	if got := All.String(); got != "read call operate admin" {
		t.Errorf("All = %q", got)
	}
	for _, name := range All.Names() {
		one, ok := ParseScope(name)
		if !ok || one.String() != name || !All.Has(one) || Scopes(0).Has(one) {
			t.Errorf("%s: %v %v", name, one, ok)
		}
		for _, other := range All.Names() {
			if o, _ := ParseScope(other); Scopes(one).Has(o) != (o == one) {
				t.Errorf("%s includes %s: %v", name, other, Scopes(one).Has(o))
			}
		}
	}
	for _, name := range []string{"", "Read", "read call", "root"} {
		if s, ok := ParseScope(name); ok || s != 0 {
			t.Errorf("%q is the scope %v", name, s)
		}
	}
	if All.Has(0) {
		t.Error("a set has the scope that is none")
	}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	file, issuer := Principal{Name: "alice"}, Principal{Name: "alice", Issuer: "https://id.example"}
	if file.Owner() != "alice" || issuer.Owner() != "https://id.example#alice" || Local().Owner() != "local" {
		t.Errorf("owners: %q, %q, %q", file.Owner(), issuer.Owner(), Local().Owner())
	}
	file.Namespace, issuer.Namespace = "acme", "acme"
	if file.Visitor().Owner() != "acme/alice" || issuer.Visitor().Owner() != "acme/https://id.example#alice" {
		t.Errorf("visitors: %q, %q", file.Visitor().Owner(), issuer.Visitor().Owner())
	}
	for _, name := range []string{issuer.Owner(), file.Visitor().Owner(), issuer.Visitor().Owner()} {
		if _, err := ParseTokens([]byte(name + " " + secret)); err == nil {
			t.Errorf("a file may name %q", name)
		}
	}
}

func TestParseTokens(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte(secret))
	for line, want := range map[string]Principal{
		"alice " + secret: {Name: "alice", Namespace: "default", Scopes: All},
		"alice\tsha256:" + hex.EncodeToString(sum[:]) + "\r\n": {Name: "alice", Namespace: "default",
			Scopes: All},
		"# who\n\nalice " + secret + " scopes=read,call namespace=acme": {Name: "alice", Namespace: "acme",
			Scopes: Scopes(Read | Call)},
		"alice " + secret + " rate=0.5/s concurrency=8": {Name: "alice", Namespace: "default",
			Scopes: All, Rate: 0.5, Concurrency: 8},
		"\ufeff# of an editor\nalice " + secret: {Name: "alice", Namespace: "default",
			Scopes: All},
		"\ufeffalice " + secret: {Name: "alice", Namespace: "default",
			Scopes: All},
		"alice " + secret + " scopes=": {Name: "alice",
			Namespace: "default"},
		"bob bbbbbbbbbbbbbbbb namespace=b\nalice " + secret + " scopes=admin\n\n": {Name: "alice", Namespace: "default",
			Scopes: Scopes(Admin)},
		"alice aaaaaaaaaaaaaaaa namespace=acme\nalice " + secret: {Name: "alice", Namespace: "default",
			Scopes: All},
	} {
		tokens, err := ParseTokens([]byte(line))
		if err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		if got, err := tokens.Authenticate(t.Context(), secret); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", line, got, err, want)
		}
		if got, err := tokens.Authenticate(t.Context(), secret+
			"0"); !errors.Is(err, ErrUnknown) || got != (Principal{}) {
			t.Errorf("%q: an unknown token is %+v, %v", line, got, err)
		}
	}
}

func TestTokenFileErrors(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"":                      "no token",
		"# alice " + secret:     "no token",
		"\nalice":               "line 2: ",
		"alice short":           "shorter than 16",
		"a/b " + secret:         "name is refused",
		"al\u200bice " + secret: "invisible characters",
		"bob bbbbbbbbbbbbbbbb\n\ufeffalice " + secret: "line 2: the name is refused",
		"alice sha256:00":                                    "64 hex digits",
		"alice " + secret + " my-second-secret":              "namespace=, scopes=, rate= and concurrency=",
		"alice " + secret + " scopes=my-second-secret":       "read, call, operate and admin",
		"alice " + secret + " scopes=read,":                  "read, call, operate and admin",
		"alice " + secret + " namespace=My-Second-Secret":    "1 to 63 characters",
		"alice " + secret + " namespace=":                    "1 to 63 characters",
		"alice " + secret + " rate=50":                       "such as 50/s",
		"alice " + secret + " rate=0/s":                      "such as 50/s",
		"alice " + secret + " rate=NaN/s":                    "such as 50/s",
		"alice " + secret + " rate=1e7/s":                    "such as 50/s",
		"alice " + secret + " rate=-1/s":                     "such as 50/s",
		"alice " + secret + " concurrency=0":                 "from 1 to 1000000",
		"alice " + secret + " concurrency=1.5":               "from 1 to 1000000",
		"alice " + secret + " scopes=read scopes=admin":      "twice",
		"alice " + secret + "\nbob " + secret:                "line 2: ",
		"alice " + secret + "\nalice bbbbbbbbbbbbbbbb":       "twice",
		"alice " + secret + " namespace=a\nalice short":      "line 2: ",
		"alice " + secret + " namespace=a\nbob " + secret:    "twice",
		"alice " + secret + " concurrency=99999999999999999": "from 1 to 1000000",
	} {
		tokens, err := ParseTokens([]byte(file))
		if err == nil || tokens != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", file, err, want)
			continue
		}
		if text := strings.ToLower(err.Error()); strings.Contains(text, secret) ||
			strings.Contains(text, "my-second-secret") {
			t.Errorf("%q: the error shows a secret: %v", file, err)
		}
	}
}

// For any file, no error contains a word that could be a token. Each accepted token is within limits and can be found.
func FuzzParseTokens(f *testing.F) {
	f.Add("alice", "ZZ-secret-secret", "namespace=acme scopes=read rate=1/s concurrency=2")
	f.Add("#", "ZZ-secret-secret", "\nbob ZZ-secret-secret")
	f.Add("a/b", "ZZ-secret-secret", "scopes=")
	f.Fuzz(func(t *testing.T, name, token, rest string) {
		file := name + " " + token + " " + rest
		tokens, err := ParseTokens([]byte(file))
		if err != nil {
			if tokens != nil {
				t.Fatalf("%q: tokens and the error %v", file, err)
			}
			for word := range strings.FieldsSeq(file) {
				if strings.HasPrefix(word, "ZZ") && strings.Contains(err.Error(), word) {
					t.Fatalf("%q: the error quotes %q: %v", file, word, err)
				}
			}
			return
		}
		for _, got := range tokens.list {
			p := got.Principal
			if agent.CheckStoredName("name", p.Name) != nil || p.Namespace.Validate() != nil || p.Scopes&^All != 0 ||
				!(p.Rate >= 0 && p.Rate <= MaxRate) || p.Concurrency < 0 || p.Issuer != "" {
				t.Fatalf("%q: %+v", file, p)
			}
		}
		if fields := strings.Fields(file); len(fields) > 1 && !strings.HasPrefix(fields[0], "#") &&
			!strings.HasPrefix(fields[1], "sha256:") {
			if p, err := tokens.Authenticate(t.Context(), fields[1]); err != nil || p != tokens.list[0].Principal {
				t.Fatalf("%q: %+v, %v", file, p, err)
			}
		}
	})
}
