package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// The documents that are held in memory whole.
const (
	registryFile   = "tools/registry.json"
	indexFile      = "tools/index.json"
	policyFile     = "policy.json"
	patternsFile   = "patterns.json"
	contentFile    = "content.json"
	checkpointFile = "journal/checkpoint.json"
	auditFile      = "audit.jsonl"
)

// registryDoc is tools/registry.json (seed 001's data model).
type registryDoc struct {
	head
	Tools map[string]*agent.Tool `json:"tools"`
}

// indexDoc is tools/index.json: the artifacts' figures, so that neither the ranking nor the start reads every
// artifact. It is derived: when it is missing or corrupt, it is made again from the artifacts.
type indexDoc struct {
	head
	Artifacts map[string]map[string]store.Figures `json:"artifacts"` // by role and method
}

type policyDoc struct {
	head
	Revision int64           `json:"revision"`
	Policy   json.RawMessage `json:"policy"`
}

type patternsDoc struct {
	head
	Roles map[string][]agent.PatternEvent `json:"roles"`
}

type contentDoc struct {
	head
	Entries []store.Kept `json:"entries"` // least recently used first
}

// checkpointDoc is journal/checkpoint.json: the files have everything up to lsn, and the line files have what the
// later entries brought only beyond these places.
type checkpointDoc struct {
	head
	Calls    jsonl.Place `json:"calls"`
	Values   jsonl.Place `json:"values"`
	Audit    int64       `json:"audit_bytes"`
	Sessions int64       `json:"sessions"` // how many there are; -1: not counted

	Unarchived []string `json:"unarchived,omitempty"` // files of the archive that are to go
}

// maxPatterns bounds the pattern events of all roles together; the roles that went longest without one lose theirs.
const maxPatterns = 20_000

// loadRegistry reads the documents that are held whole. It returns the lsn of the checkpoint, and whether the index
// has to be made anew.
func (s *Store) loadDocuments() error {
	var reg registryDoc
	if err := s.readOptional(registryFile, &reg, func() error { return checkRegistry(&reg) }); err != nil {
		return err
	}
	s.registryLSN = reg.LSN
	for _, t := range reg.Tools {
		s.ranking.SetTool(compactTool(t))
	}
	s.roles = slices.Sorted(maps.Keys(reg.Tools))
	if err := s.loadIndex(); err != nil {
		return err
	}
	var pol policyDoc
	policy := agent.DefaultPolicy()
	err := s.readOptional(policyFile, &pol, func() error {
		p, err := decodePolicy(pol.Policy)
		policy = p
		return err
	})
	if err != nil {
		return err
	}
	if pol.Policy == nil {
		policy = agent.DefaultPolicy()
	}
	s.policy, s.policyLSN, s.policyRevision = &policy, pol.LSN, pol.Revision
	var pat patternsDoc
	if err := s.readOptional(patternsFile, &pat, nil); err != nil {
		return err
	}
	s.patternsLSN = pat.LSN
	for role, events := range pat.Roles {
		s.patterns[role] = events
		s.patternCount += len(events)
	}
	var con contentDoc
	if err := s.readOptional(contentFile, &con, nil); err != nil {
		return err
	}
	s.contentLSN = con.LSN
	for _, e := range con.Entries {
		e.Value = compact(e.Value)
		s.content.Restore(e)
	}
	return nil
}

// readOptional is read for a document that may be missing or corrupt: doc is then as good as empty.
func (s *Store) readOptional(name string, doc any, check func() error) error {
	err := s.read(name, doc, check)
	if vfs.NotExist(err) {
		return nil
	}
	if errors.Is(err, errCorrupt) {
		s.lost = append(s.lost, name)
		return resetDocument(doc)
	}
	return err
}

// resetDocument empties what a corrupt file may have half filled.
func resetDocument(doc any) error {
	switch d := doc.(type) {
	case *registryDoc:
		*d = registryDoc{}
	case *indexDoc:
		*d = indexDoc{}
	case *policyDoc:
		*d = policyDoc{}
	case *patternsDoc:
		*d = patternsDoc{}
	case *contentDoc:
		*d = contentDoc{}
	case *checkpointDoc:
		*d = checkpointDoc{}
	default:
		return fmt.Errorf("a document of type %T", doc)
	}
	return nil
}

// decodePolicy reads a policy over the defaults, so that one of an older daemon has values for what it did not know.
func decodePolicy(data []byte) (agent.Policy, error) {
	p := agent.DefaultPolicy()
	if len(data) == 0 {
		return p, errors.New("holds no policy")
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, err
	}
	return p, p.Validate()
}

func checkRegistry(reg *registryDoc) error {
	for role, t := range reg.Tools {
		if t == nil {
			return fmt.Errorf("nothing stands for the tool %q", role)
		}
		t.Role = role
	}
	return nil
}

func compactTool(t *agent.Tool) *agent.Tool {
	compactContract(&t.Contract)
	for k, c := range t.Methods {
		compactContract(&c)
		t.Methods[k] = c
	}
	return t
}

func compactContract(c *agent.Contract) {
	c.Deliverable, c.Acceptance = compact(c.Deliverable), compact(c.Acceptance)
	c.FailurePolicy, c.Signature = compact(c.FailurePolicy), compact(c.Signature)
}

// compact undoes the indentation that a document gives to the JSON within it. It returns what is no JSON as it is.
func compact(v json.RawMessage) json.RawMessage {
	if !bytes.ContainsAny(v, " \n") {
		return v
	}
	var out bytes.Buffer
	if json.Compact(&out, v) != nil {
		return v
	}
	return out.Bytes()
}

func (s *Store) loadIndex() error {
	var index indexDoc
	err := s.read(indexFile, &index, nil)
	switch {
	case vfs.NotExist(err), errors.Is(err, errCorrupt):
		return s.rebuildIndex()
	case err != nil:
		return err
	}
	for role, methods := range index.Artifacts {
		for method, f := range methods {
			s.ranking.SetArtifact(role, method, f)
		}
	}
	return nil
}

// rebuildIndex reads every artifact for its figures.
func (s *Store) rebuildIndex() error {
	s.indexDirty = true
	return s.eachArtifactFile(func(name string) error {
		doc := artifactDoc{}
		err := s.read(name, &doc, func() error {
			if doc.Artifact == nil {
				return errors.New("holds no artifact")
			}
			return checkArtifact(doc.Artifact, artifactKey{doc.Role, doc.MethodName})
		})
		var newer *newerError
		if errors.Is(err, errCorrupt) || vfs.NotExist(err) || errors.As(err, &newer) {
			return nil
		}
		if err != nil {
			return err
		}
		s.ranking.SetArtifact(doc.Role, doc.MethodName, store.FiguresOf(doc.Artifact))
		return nil
	})
}

// eachArtifactFile visits the names of all artifacts' documents.
func (s *Store) eachArtifactFile(visit func(name string) error) error {
	dirs, err := s.fs.List("tools")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if dir == "archive" {
			continue
		}
		if info, err := s.fs.Stat("tools/" + dir); err != nil || !info.Dir {
			continue
		}
		names, err := s.fs.List("tools/" + dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".json") && !isCorruptName(name) {
				if err := visit("tools/" + dir + "/" + name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// registry renders tools/registry.json. The caller holds mu.
func (s *Store) registry() registryDoc {
	doc := registryDoc{head: head{agent.SchemaVersion, s.applied}, Tools: make(map[string]*agent.Tool, len(s.roles))}
	for _, role := range s.roles {
		doc.Tools[role] = s.ranking.Tool(role)
	}
	return doc
}

// index renders tools/index.json. The caller holds mu.
func (s *Store) index() indexDoc {
	doc := indexDoc{head: head{agent.SchemaVersion, s.applied}, Artifacts: map[string]map[string]store.Figures{}}
	for _, role := range s.ranking.Roles() {
		if methods := s.ranking.Methods(role); len(methods) > 0 {
			figures := make(map[string]store.Figures, len(methods))
			for _, m := range methods {
				figures[m], _ = s.ranking.Artifact(role, m)
			}
			doc.Artifacts[role] = figures
		}
	}
	return doc
}

// setTool puts a tool in place. The caller holds mu.
func (s *Store) setTool(t *agent.Tool) {
	if s.ranking.Tool(t.Role) == nil {
		i, _ := slices.BinarySearch(s.roles, t.Role)
		s.roles = slices.Insert(s.roles, i, t.Role)
	}
	s.ranking.SetTool(t)
}

// dropTool takes a tool away. The caller holds mu.
func (s *Store) dropTool(role string) {
	if i, found := slices.BinarySearch(s.roles, role); found {
		s.roles = slices.Delete(s.roles, i, i+1)
	}
	s.ranking.DropTool(role)
}

// addPattern puts a pattern event in place. The caller holds mu.
func (s *Store) addPattern(p *agent.PatternEvent) {
	events := append(s.patterns[p.Role], *p)
	s.patternCount++
	if len(events) > store.PatternsKept {
		s.patternCount -= len(events) - store.PatternsKept
		events = events[len(events)-store.PatternsKept:]
	}
	s.patterns[p.Role] = events
	s.patternsDirty = true
	if s.patternCount > maxPatterns {
		s.thinPatterns()
	}
}

// thinPatterns drops the roles that went longest without an event until a tenth of the room is free.
func (s *Store) thinPatterns() {
	newest := func(role string) string { e := s.patterns[role]; return e[len(e)-1].Timestamp }
	roles := slices.SortedFunc(maps.Keys(s.patterns), func(a, b string) int { return strings.Compare(newest(a), newest(b)) })
	for _, role := range roles {
		if s.patternCount <= maxPatterns*9/10 {
			return
		}
		s.patternCount -= len(s.patterns[role])
		delete(s.patterns, role)
	}
}

// forgetPatterns drops a session's events. The caller holds mu.
func (s *Store) forgetPatterns(session string) {
	for role, events := range s.patterns {
		kept := slices.DeleteFunc(slices.Clone(events), func(e agent.PatternEvent) bool { return e.SessionID == session })
		if len(kept) == len(events) {
			continue
		}
		s.patternCount -= len(events) - len(kept)
		s.patternsDirty = true
		if s.patterns[role] = kept; len(kept) == 0 {
			delete(s.patterns, role)
		}
	}
}
