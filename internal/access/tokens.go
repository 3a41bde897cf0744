package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// MinToken is the least length of a token: 16 characters of hex are 64 bits.
const MinToken = 16

// Token is an access token, known by its digest only.
type Token struct {
	Principal
	SHA256 [32]byte
}

// Tokens are the tokens of a file: an Authenticator.
type Tokens struct {
	list       []Token
	namespaces map[agent.Namespace]bool
	seed       maphash.Seed
	index      map[uint64][]int // in list, by hash of the digest
}

// NewTokens returns the tokens as an Authenticator. Of two with the same digest the first counts.
func NewTokens(list ...Token) *Tokens {
	t := &Tokens{list: list, namespaces: map[agent.Namespace]bool{}, seed: maphash.MakeSeed(),
		index: make(map[uint64][]int, len(list))}
	for i := range list {
		at := maphash.Comparable(t.seed, list[i].SHA256)
		t.index[at] = append(t.index[at], i)
		t.namespaces[list[i].Namespace] = true
	}
	return t
}

// Authenticate implements Authenticator. What it costs does not depend on the number of tokens. Its time reveals nothing of them: where it looks
// depends on a seed that nobody knows, and what it finds there is compared in constant time.
func (t *Tokens) Authenticate(_ context.Context, bearer string) (Principal, error) {
	digest := sha256.Sum256([]byte(bearer))
	for _, i := range t.index[maphash.Comparable(t.seed, digest)] {
		if subtle.ConstantTimeCompare(digest[:], t.list[i].SHA256[:]) == 1 {
			return t.list[i].Principal, nil
		}
	}
	return Principal{}, ErrUnknown
}

// Names reports whether a token acts in the namespace, which then exists without being made.
func (t *Tokens) Names(name agent.Namespace) bool { return t.namespaces[name] }

// NewToken returns the token of a secret.
func NewToken(p Principal, secret string) Token { return Token{p, sha256.Sum256([]byte(secret))} }

// ParseTokens reads the token file, one token a line:
//
//	name secret [namespace=acme] [scopes=read,call,operate,admin] [rate=50/s] [concurrency=8]
//
// The secret is the token, or sha256: and its digest in hex. What is left out is: the default namespace, all scopes, no limits.
// Empty lines, lines that begin with # and a byte order mark before the first are ignored. No name has characters that nobody sees: two names would
// look the same. Errors name the line and quote nothing of it.
func ParseTokens(data []byte) (*Tokens, error) {
	var tokens []Token
	type owner struct {
		agent.Namespace
		name string
	}
	owners, digests := map[owner]bool{}, map[[32]byte]bool{}
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) { // as some editors begin a file
		number++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		t, err := parseToken(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		o := owner{t.Namespace, t.Name}
		if owners[o] || digests[t.SHA256] {
			return nil, fmt.Errorf("line %d: the name or the token is there twice", number)
		}
		owners[o], digests[t.SHA256] = true, true
		tokens = append(tokens, t)
	}
	if len(tokens) == 0 {
		return nil, errors.New("holds no token")
	}
	return NewTokens(tokens...), nil
}

func parseToken(fields []string) (t Token, err error) {
	if len(fields) < 2 {
		return t, errors.New("it is not a name and a token")
	}
	t.Principal = Principal{Name: fields[0], Namespace: agent.DefaultNamespace, Scopes: All}
	if err := agent.CheckName("name", t.Name); err != nil {
		return t, fmt.Errorf("the name is refused: %w", err)
	}
	if digest, ok := strings.CutPrefix(fields[1], "sha256:"); ok {
		if n, err := hex.Decode(t.SHA256[:],
			[]byte(digest[:min(len(digest), 64)])); err != nil || n != 32 || len(digest) != 64 {
			return t, errors.New("sha256: is not followed by 64 hex digits")
		}
	} else if len(fields[1]) < MinToken {
		return t, fmt.Errorf("the token is shorter than %d characters", MinToken)
	} else {
		t.SHA256 = sha256.Sum256([]byte(fields[1]))
	}
	given := map[string]bool{}
	for _, f := range fields[2:] {
		name, value, _ := strings.Cut(f, "=")
		if given[name] {
			return t, errors.New("a setting is there twice")
		}
		given[name] = true
		if err := t.set(name, value); err != nil {
			return t, err
		}
	}
	return t, nil
}

// The largest limits of a principal.
const (
	MaxRate        = 1e6 // requests per second
	MaxConcurrency = 1e6 // calls at once
)

// ParseRate reads a rate such as 50/s or 0.5/s, in requests per second, above 0 and up to MaxRate. The error says what a rate is, and quotes nothing.
func ParseRate(text string) (float64, error) {
	number, per := strings.CutSuffix(text, "/s")
	rate, err := strconv.ParseFloat(number, 64)
	if err != nil || !per || !(rate > 0 && rate <= MaxRate) {
		return 0, errors.New("a number of requests per second above 0, such as 50/s")
	}
	return rate, nil
}

// set takes one setting of a line. What stands there may be a part of a token with a space in it: errors do not quote it.
func (p *Principal) set(name, value string) (err error) {
	switch name {
	case "namespace":
		if p.Namespace = agent.Namespace(value); p.Namespace.Validate() != nil {
			return errors.New("namespace= is not followed by a name of 1 to 63 characters of a-z, 0-9 and -, not - at either end")
		}
	case "scopes":
		if p.Scopes, err = parseScopes(value); err != nil {
			return err
		}
	case "rate":
		if p.Rate, err = ParseRate(value); err != nil {
			return fmt.Errorf("rate= is not followed by %w", err)
		}
	case "concurrency":
		if p.Concurrency, err = strconv.Atoi(value); err != nil || p.Concurrency < 1 || p.Concurrency > MaxConcurrency {
			return errors.New("concurrency= is not followed by a number of calls from 1 to 1000000")
		}
	default:
		return errors.New("after the token come only namespace=, scopes=, rate= and concurrency=")
	}
	return nil
}

// parseScopes reads names with commas between them. None at all is a token that is known and may do nothing.
func parseScopes(list string) (all Scopes, err error) {
	if list == "" {
		return 0, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		scope, known := ParseScope(name)
		if !known {
			return 0, errors.New("scopes= is not followed by some of read, call, operate and admin, with commas between them")
		}
		all |= Scopes(scope)
	}
	return all, nil
}
