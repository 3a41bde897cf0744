package disk

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// artifact is a stored program at one moment; it never changes. a is nil for one that was archived or removed.
type artifact struct {
	a    *agent.Artifact
	key  artifactKey
	lsn  uint64
	text []byte // the document's bytes where they must come back as they were; nil: they are encoded from a
}

// artifactKey is an artifact's key in memory.
type artifactKey struct {
	namespace    *namespace
	role, method string
}

func (k artifactKey) file() string { return "tools/" + slug(k.role) + "/" + slug(k.method) + ".json" }

// artifactDoc is tools/<role>/<method>.json.
type artifactDoc struct {
	*agent.Artifact
	LSN uint64 `json:"lsn"`
}

func (d *artifactDoc) check() error {
	if d.Artifact == nil {
		return errors.New("holds no artifact")
	}
	return checkArtifact(d.Artifact, artifactKey{role: d.Role, method: d.MethodName})
}

// checkArtifact refuses what cannot be trusted to be run, and takes over what a person changed in the fields of the
// artifact. Code whose checksum is wrong was tampered with or torn: it is never run.
func checkArtifact(a *agent.Artifact, k artifactKey) error {
	if a == nil || a.Role != k.role || a.MethodName != k.method {
		return fmt.Errorf("is not the artifact %s.%s", k.role, k.method)
	}
	cur := a.Current()
	if cur == nil && len(a.Generations) == 0 && len(a.Examples) > 0 {
		return nil // what people expect stands before there is a program
	}
	if cur == nil {
		return errors.New("has no current generation")
	}
	if agent.Checksum(a.Code) != a.CodeChecksum {
		return errWrongChecksum
	}
	for _, g := range a.Held() {
		if g == nil || agent.Checksum(g.Code) != g.CodeChecksum {
			return errors.New("a generation's checksum is wrong")
		}
		for i := range g.Fixtures {
			compactFixture(&g.Fixtures[i])
		}
		g.Facts, g.SolverShape = compact(g.Facts), compact(g.SolverShape)
	}
	cur.Code, cur.CodeChecksum, cur.Dependencies = a.Code, a.CodeChecksum, a.Dependencies
	cur.ContractFingerprint, cur.PromptVersion, cur.RuntimeVersion, cur.Model = a.ContractFingerprint, a.PromptVersion,
		a.RuntimeVersion, a.Model
	cur.Cacheable, cur.CacheabilityReason, cur.Approved = a.Cacheable, a.CacheabilityReason, a.Approved
	return nil
}

// compactFixture removes the indentation that a document gives to the JSON in it: fixtures are compared and counted by
// their bytes.
func compactFixture(f *agent.Fixture) {
	for i := range f.Args {
		f.Args[i] = compact(f.Args[i])
	}
	f.Kwargs, f.Context, f.Value, f.Effects = compact(f.Kwargs), compact(f.Context), compact(f.Value),
		compact(f.Effects)
}

// live returns the artifact, or store.ErrNotFound for one that was archived or removed.
func (x *artifact) live() (*artifact, error) {
	if x.a == nil {
		return nil, store.ErrNotFound
	}
	return x, nil
}

// weight is roughly the size of an artifact in the cache.
func (x *artifact) weight() uint32 {
	const fixed = 1024
	n := fixed
	if x.a != nil {
		for _, g := range x.a.Generations {
			n += fixed + 2*len(g.Code)
			for _, f := range g.Fixtures {
				n += len(f.Value) + len(f.Effects) + len(f.Kwargs) + len(f.Context)
			}
		}
	}
	return uint32(min(n, 1<<30))
}

func (x *artifact) encode() ([]byte, error) {
	if x.text != nil {
		return x.text, nil
	}
	text, err := json.MarshalIndent(artifactDoc{x.a, x.lsn}, "", "  ")
	return append(text, '\n'), err
}
