package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// artifact is a stored program at one moment; it never changes. a is nil when the artifact was taken away.
type artifact struct {
	a    *agent.Artifact
	key  artifactKey
	lsn  uint64
	text []byte // the document's bytes where they must come back as they were; nil: they are made from a
}

type artifactKey struct{ role, method string }

func (k artifactKey) file() string { return "tools/" + slug(k.role) + "/" + slug(k.method) + ".json" }

// artifactDoc is tools/<role>/<method>.json.
type artifactDoc struct {
	*agent.Artifact
	LSN uint64 `json:"lsn"`
}

// artifact returns the live artifact, from memory or from its file. store.ErrNotFound.
func (s *Store) artifact(k artifactKey) (*artifact, error) {
	x, err := s.lookupArtifact(k)
	if err == nil && x.a == nil {
		return nil, store.ErrNotFound
	}
	return x, err
}

// lookupArtifact is artifact, but for one that was taken away it returns that fact.
func (s *Store) lookupArtifact(k artifactKey) (*artifact, error) {
	if x := s.cachedArtifact(k); x != nil {
		return x, nil
	}
	lock := s.stripe(k.role, k.method)
	lock.Lock()
	defer lock.Unlock()
	if x := s.cachedArtifact(k); x != nil {
		return x, nil
	}
	x, err := s.loadArtifact(k)
	if err != nil {
		return nil, err
	}
	s.artifacts.Set(k, x)
	return x, nil
}

func (s *Store) cachedArtifact(k artifactKey) *artifact {
	s.mu.RLock()
	x := s.dirty[k]
	s.mu.RUnlock()
	if x != nil {
		return x
	}
	if x, ok := s.artifacts.GetIfPresent(k); ok {
		return x
	}
	return nil
}

func (s *Store) loadArtifact(k artifactKey) (*artifact, error) {
	doc := artifactDoc{}
	err := s.read(k.file(), &doc, func() error { return checkArtifact(doc.Artifact, k) })
	var newer *newerError
	if errors.As(err, &newer) { // an artifact can be forged again: it does not keep the daemon from working
		err = s.quarantine(k.file(), err)
	}
	switch {
	case err == nil:
		return &artifact{a: doc.Artifact, key: k, lsn: doc.LSN}, nil
	case vfs.NotExist(err), errors.Is(err, errCorrupt):
		s.mu.Lock()
		if s.dirty[k] == nil {
			s.ranking.DropArtifact(k.role, k.method)
			s.indexDirty = true
		}
		s.mu.Unlock()
		return nil, store.ErrNotFound
	}
	return nil, err
}

// checkArtifact refuses what cannot be trusted to be run, and takes over what a person changed in the flattened
// fields. Code whose checksum is wrong was tampered with or torn: it is never run (P-42).
func checkArtifact(a *agent.Artifact, k artifactKey) error {
	if a == nil || a.Role != k.role || a.MethodName != k.method {
		return fmt.Errorf("is not the artifact %s.%s", k.role, k.method)
	}
	cur := a.Current()
	if cur == nil {
		return errors.New("has no current generation")
	}
	if agent.Checksum(a.Code) != a.CodeChecksum {
		return errors.New("the code's checksum is wrong")
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
	cur.ContractFingerprint, cur.PromptVersion, cur.RuntimeVersion, cur.Model = a.ContractFingerprint, a.PromptVersion, a.RuntimeVersion, a.Model
	cur.Cacheable, cur.CacheabilityReason = a.Cacheable, a.CacheabilityReason
	return nil
}

// compactFixture undoes the indentation that a document gives to the JSON within it: fixtures are compared and
// counted by their bytes.
func compactFixture(f *agent.Fixture) {
	for i := range f.Args {
		f.Args[i] = compact(f.Args[i])
	}
	f.Kwargs, f.Context, f.Value, f.Effects = compact(f.Kwargs), compact(f.Context), compact(f.Value), compact(f.Effects)
}

func (x *artifact) encode() ([]byte, error) {
	if x.text != nil {
		return x.text, nil
	}
	text, err := json.MarshalIndent(artifactDoc{x.a, x.lsn}, "", "  ")
	return append(text, '\n'), err
}

func programFile(checksum string) (string, bool) {
	sum, ok := strings.CutPrefix(checksum, "sha256:")
	if !ok || len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		return "", false
	}
	return "programs/" + sum + ".go", true
}

// program reads a program text and checks it against its name.
func (s *Store) program(checksum string) (string, error) {
	name, ok := programFile(checksum)
	if !ok {
		return "", store.ErrNotFound
	}
	s.mu.RLock()
	code, pending := s.programs[checksum]
	s.mu.RUnlock()
	if pending {
		return code, nil
	}
	data, err := s.fs.ReadFile(name)
	if vfs.NotExist(err) {
		return "", store.ErrNotFound
	}
	if err != nil {
		return "", err
	}
	if agent.Checksum(string(data)) != checksum {
		if err := s.quarantine(name, errors.New("the checksum is wrong")); !errors.Is(err, errCorrupt) {
			return "", err
		}
		return "", store.ErrNotFound
	}
	return string(data), nil
}

// archiveFile is where an archived artifact, or tool when the method is empty, is kept.
func archiveFile(t store.Target, stamp string) string {
	if t.Method == "" {
		return "tools/archive/registry/" + slug(t.Role) + "." + stamp + ".json"
	}
	return "tools/archive/" + slug(t.Role) + "/" + slug(t.Method) + "." + stamp + ".json"
}

// archivedNames finds what the archive holds of a target: the newest of each artifact, and of the tool.
func (s *Store) archivedNames(t store.Target) ([]string, error) {
	newest := map[string]string{} // slug, or "" for the tool, to file
	s.mu.RLock()
	back := slices.Clone(s.unarchiving)
	s.mu.RUnlock()
	collect := func(dir string, key func(base string) (string, bool)) error {
		names, err := s.fs.List(dir)
		if vfs.NotExist(err) {
			return nil
		}
		for _, name := range names { // sorted: later stamps come later
			base, _, ok := strings.Cut(name, ".")
			if k, wanted := key(base); ok && wanted && !isCorruptName(name) && !slices.Contains(back, path.Join(dir, name)) {
				newest[k] = path.Join(dir, name)
			}
		}
		return err
	}
	if err := collect("tools/archive/"+slug(t.Role), func(base string) (string, bool) {
		return base, t.Method == "" && !t.ToolOnly || base == slug(t.Method)
	}); err != nil {
		return nil, err
	}
	if t.Method == "" {
		if err := collect("tools/archive/registry", func(base string) (string, bool) { return "", base == slug(t.Role) }); err != nil {
			return nil, err
		}
	}
	out := make([]string, 0, len(newest))
	for _, name := range newest {
		out = append(out, name)
	}
	return out, nil
}

// restored is an archived file that comes back.
type restored struct {
	name     string
	tool     *agent.Tool
	artifact *artifact
}

// readArchived reads a file of the archive.
func (s *Store) readArchived(name string) (restored, error) {
	text, err := s.fs.ReadFile(name)
	if err != nil {
		return restored{}, err
	}
	if strings.HasPrefix(name, "tools/archive/registry/") {
		doc := toolDoc{}
		if err := s.decode(name, text, &doc, nil); err != nil {
			return restored{}, err
		}
		return restored{name: name, tool: compactTool(&doc.Tool)}, nil
	}
	doc := artifactDoc{}
	if err := s.decode(name, text, &doc, func() error {
		if doc.Artifact == nil {
			return errors.New("holds no artifact")
		}
		return checkArtifact(doc.Artifact, artifactKey{doc.Role, doc.MethodName})
	}); err != nil {
		return restored{}, err
	}
	k := artifactKey{doc.Role, doc.MethodName}
	return restored{name: name, artifact: &artifact{a: doc.Artifact, key: k, lsn: doc.LSN, text: text}}, nil
}

// toolDoc is an archived tool.
type toolDoc struct {
	SchemaVersion int `json:"schema_version"`
	agent.Tool
}
