package disk

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// artifact is a stored program at one moment. It never changes. a is nil if the artifact was archived or removed.
type artifact struct {
	a    *agent.Artifact
	key  artifactKey
	lsn  uint64 // of the last entry that changed it
	text []byte // the document's bytes if they must be restored exactly; nil means that they are encoded from a
}

// artifactKey identifies an artifact in memory.
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

// checkArtifact returns an error for artifacts that must not be run, and adopts what a person changed in the artifact's
// own fields. Code with a wrong checksum was tampered with or torn and is never run.
func checkArtifact(a *agent.Artifact, k artifactKey) error {
	if a == nil || a.Role != k.role || a.MethodName != k.method {
		return fmt.Errorf("is not the artifact %s.%s", k.role, k.method)
	}
	cur := a.Current()
	if cur == nil && len(a.Generations) == 0 && len(a.Examples) > 0 {
		return nil // examples can exist before there is a program
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

// compactFixture removes insignificant whitespace that the document's indentation added. Fixtures are compared and
// counted by their bytes.
func compactFixture(f *agent.Fixture) {
	for i := range f.Args {
		f.Args[i] = compact(f.Args[i])
	}
	f.Kwargs, f.Context, f.Value, f.Effects = compact(f.Kwargs), compact(f.Context), compact(f.Value),
		compact(f.Effects)
}

// live returns the artifact, or store.ErrNotFound if it was archived or removed.
func (x *artifact) live() (*artifact, error) {
	if x.a == nil {
		return nil, store.ErrNotFound
	}
	return x, nil
}

// weight returns the approximate size of the artifact in the cache, in bytes.
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

// encode returns the bytes of the artifact's document.
func (x *artifact) encode() ([]byte, error) {
	if x.text != nil {
		return x.text, nil
	}
	text, err := json.MarshalIndent(artifactDoc{x.a, x.lsn}, "", "  ")
	return append(text, '\n'), err
}
