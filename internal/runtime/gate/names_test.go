package gate

import "testing"

// Facts say whether a library may yield something else in a run with the same time and seed, and whether the program
// reads the clock by a deadline.
func TestFactsOfLibraries(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, c := range []struct {
		imports, body string
		varies, clock bool
	}{
		{"crypto/rsa", `_, _ = rsa.GenerateKey(nil, 2048)`, true, false},
		{"crypto/ecdh", `_, _ = ecdh.X25519().GenerateKey(nil)`, true, false},
		{"crypto/ecdsa", `sign := (*ecdsa.PrivateKey).Sign; _ = sign`, true, false},
		{"encoding/gob bytes", `_ = gob.NewEncoder(&bytes.Buffer{}).Encode(1)`, true, false},
		{"encoding/gob bytes", `_ = gob.NewDecoder(&bytes.Buffer{}).Decode(nil)`, false, false},
		{"log", `log.SetFlags(log.LstdFlags)`, true, false},
		{"log", `log.SetFlags(log.Lshortfile); log.Print("x")`, false, false},
		{"crypto/ecdsa", `_ = ecdsa.VerifyASN1(nil, nil, nil)`, false, false},
		{"context time", `_, stop := context.WithTimeout(context.Background(), time.Second); stop()`, false, true},
		{"context", `_, stop := context.WithCancel(context.Background()); stop()`, false, false},
	} {
		p, r := g.Check(program(c.imports, "", c.body))
		if r != nil {
			t.Errorf("%s: refused: %v", c.body, r)
		} else if p.Facts.Nondeterministic != c.varies || p.Facts.UsesClock != c.clock {
			t.Errorf("%s: got %+v", c.body, p.Facts)
		}
	}
}
