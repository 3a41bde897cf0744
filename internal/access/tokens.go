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

// MinToken is the minimum length of a token. 16 hex digits are 64 bits.
const MinToken = 16

// Token is an access token. Only its digest is kept.
type Token struct {
	Principal
	SHA256 [32]byte
}

// Tokens is an Authenticator for the tokens of a file.
type Tokens struct {
	list       []Token
	namespaces map[agent.Namespace]bool
	seed       maphash.Seed
	index      map[uint64][]int // indexes into list, by hash of the digest
}

// NewTokens returns an Authenticator for the tokens. If two have the same digest, the first one counts.
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

// Authenticate implements Authenticator. Its cost does not depend on the number of tokens. Its timing reveals nothing
// about them: a secret random seed determines the place of a token in the index, and the digests there are compared in
// constant time.
func (t *Tokens) Authenticate(_ context.Context, bearer string) (Principal, error) {
	digest := sha256.Sum256([]byte(bearer))
	for _, i := range t.index[maphash.Comparable(t.seed, digest)] {
		if subtle.ConstantTimeCompare(digest[:], t.list[i].SHA256[:]) == 1 {
			return t.list[i].Principal, nil
		}
	}
	return Principal{}, ErrUnknown
}

// Names reports whether any token acts in the namespace. Such a namespace exists without being created.
func (t *Tokens) Names(name agent.Namespace) bool { return t.namespaces[name] }

// NewToken returns the token with that secret.
func NewToken(p Principal, secret string) Token { return Token{p, sha256.Sum256([]byte(secret))} }

// ParseTokens parses a token file, which has one token per line:
//
//	name secret [namespace=acme] [scopes=read,call,operate,admin] [rate=50/s] [concurrency=8]
//
// The secret is the token itself, or sha256: followed by its digest in hex. The defaults are the default namespace, all
// scopes and no limits. ParseTokens ignores empty lines, lines that begin with # and a byte order mark at the start. It
// rejects names with invisible characters, because two such names could look the same. Errors contain the line number
// and quote nothing of the line.
func ParseTokens(data []byte) (*Tokens, error) {
	var tokens []Token
	type owner struct {
		agent.Namespace
		name string
	}
	owners, digests := map[owner]bool{}, map[[32]byte]bool{}
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) { // some editors write one
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
			return nil, fmt.Errorf("line %d: the name or the token appears twice", number)
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
			return t, errors.New("a setting appears twice")
		}
		given[name] = true
		if err := t.set(name, value); err != nil {
			return t, err
		}
	}
	return t, nil
}

// Maximum limits of a principal.
const (
	MaxRate        = 1e6 // requests per second
	MaxConcurrency = 1e6 // concurrent calls
)

// ParseRate parses a rate such as 50/s or 0.5/s. The result is in requests per second, above 0 and at most MaxRate. The
// error describes a valid rate and does not quote the text.
func ParseRate(text string) (float64, error) {
	number, per := strings.CutSuffix(text, "/s")
	rate, err := strconv.ParseFloat(number, 64)
	if err != nil || !per || !(rate > 0 && rate <= MaxRate) {
		return 0, errors.New("a number of requests per second above 0, such as 50/s")
	}
	return rate, nil
}

// set applies one setting of a line. The text may be part of a token that contains a space, so errors do not quote it.
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

// parseScopes parses names separated by commas. An empty list is valid: such a token is known but may do nothing.
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
