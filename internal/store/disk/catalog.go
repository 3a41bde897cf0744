package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// catalog is the part that holds the registered tools, and the figures by which artifacts are ranked.
type catalog struct {
	n *namespace

	ranking  *store.Ranking // guarded by shared.mu, as all below
	roles    []string       // of the registered tools, sorted
	registry held
	index    held
}

// registryDoc is tools/registry.json.
type registryDoc struct {
	head
	Tools map[string]*agent.Tool `json:"tools"`
}

// indexDoc is tools/index.json. It holds the artifacts' figures, so neither the ranking nor a start reads every
// artifact. It is derived from the artifacts and rebuilt if it is missing or corrupt.
type indexDoc struct {
	head
	Artifacts map[string]map[string]store.Figures `json:"artifacts"` // by role and method
}

func newCatalog(n *namespace) *catalog {
	p := &catalog{n: n, ranking: store.NewRanking()}
	p.registry = held{name: registryFile, render: p.renderRegistry}
	p.index = held{name: indexFile, render: p.renderIndex}
	return p
}

// load reads the registry and the index. It reports whether the registry was corrupt.
func (p *catalog) load() (corrupt bool, err error) {
	var reg registryDoc
	if corrupt, err = readOptional(p.n.files, registryFile, &reg,
		func() error { return checkRegistry(&reg) }); err != nil {
		return false, err
	}
	p.registry.lsn = reg.LSN
	for _, t := range reg.Tools {
		p.ranking.SetTool(compactTool(t))
	}
	p.roles = slices.Sorted(maps.Keys(reg.Tools))
	return corrupt, p.loadIndex()
}

// checkRegistry returns an error if a role has no tool. It sets the roles of the tools.
func checkRegistry(reg *registryDoc) error {
	for role, t := range reg.Tools {
		if t == nil {
			return fmt.Errorf("nothing stands for the tool %q", role)
		}
		t.Role = role
	}
	return nil
}

// compactTool removes insignificant whitespace from the contracts of a tool.
func compactTool(t *agent.Tool) *agent.Tool {
	compactContract(&t.Contract)
	for k, c := range t.Methods {
		compactContract(&c)
		t.Methods[k] = c
	}
	if t.Proposals != nil {
		for i := range t.Proposals.Open {
			compactContract(&t.Proposals.Open[i].Contract)
		}
	}
	return t
}

func compactContract(c *agent.Contract) {
	c.Deliverable, c.Acceptance = compact(c.Deliverable), compact(c.Acceptance)
	c.FailurePolicy, c.Signature = compact(c.FailurePolicy), compact(c.Signature)
}

// compact removes the whitespace that the indentation of a document adds to nested JSON. It returns invalid JSON
// unchanged.
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

// loadIndex reads the index, or rebuilds it.
func (p *catalog) loadIndex() error {
	var index indexDoc
	err := p.n.files.read(indexFile, &index, nil)
	switch {
	case vfs.NotExist(err), errors.Is(err, errCorrupt):
		return p.rebuildIndex()
	case err != nil:
		return err
	}
	for role, methods := range index.Artifacts {
		for method, f := range methods {
			p.ranking.SetArtifact(role, method, f)
		}
	}
	return nil
}

// rebuildIndex reads the figures of every artifact. The caller holds shared.mu or has not shared the store yet.
func (p *catalog) rebuildIndex() error {
	p.index.lags = true
	return eachArtifactFile(p.n.files, func(name string) error {
		doc := artifactDoc{}
		err := p.n.files.read(name, &doc, func() error { return doc.check() })
		var newer *newerError
		if errors.Is(err, errCorrupt) || vfs.NotExist(err) || errors.As(err, &newer) {
			return nil
		}
		if err != nil {
			return err
		}
		p.ranking.SetArtifact(doc.Role, doc.MethodName, store.FiguresOf(doc.Artifact))
		return nil
	})
}

// eachArtifactFile calls visit with the names of all artifacts' documents, except archived ones.
func eachArtifactFile(f *files, visit func(name string) error) error {
	return f.eachDir("tools", func(dir string) error {
		if dir == archiveDir {
			return nil
		}
		names, err := f.List(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".json") && !isCorruptName(name) {
				if err := visit(dir + "/" + name); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// renderRegistry returns the registry's document. The caller holds shared.mu.
func (p *catalog) renderRegistry(h head) (any, error) {
	doc := registryDoc{head: h, Tools: make(map[string]*agent.Tool, len(p.roles))}
	for _, role := range p.roles {
		doc.Tools[role] = p.ranking.Tool(role)
	}
	return doc, nil
}

// renderIndex returns the index's document. The caller holds shared.mu.
func (p *catalog) renderIndex(h head) (any, error) {
	doc := indexDoc{head: h, Artifacts: map[string]map[string]store.Figures{}}
	for _, role := range p.ranking.Roles() {
		if methods := p.ranking.Methods(role); len(methods) > 0 {
			figures := make(map[string]store.Figures, len(methods))
			for _, m := range methods {
				figures[m], _ = p.ranking.Artifact(role, m)
			}
			doc.Artifacts[role] = figures
		}
	}
	return doc, nil
}

// applyTool applies a change of a tool. The caller holds shared.mu, as in the next four methods.
func (p *catalog) applyTool(t *agent.Tool) {
	if old := p.ranking.Tool(t.Role); old != nil && sameContract(old, t) {
		p.registry.lags = true
	} else {
		p.registry.behind = true
	}
	p.setTool(t)
}

func (p *catalog) setTool(t *agent.Tool) {
	if p.ranking.Tool(t.Role) == nil {
		i, _ := slices.BinarySearch(p.roles, t.Role)
		p.roles = slices.Insert(p.roles, i, t.Role)
	}
	p.ranking.SetTool(t)
}

func (p *catalog) dropTool(role string) {
	if i, found := slices.BinarySearch(p.roles, role); found {
		p.roles = slices.Delete(p.roles, i, i+1)
	}
	p.ranking.DropTool(role)
	p.registry.behind = true
}

func (p *catalog) setArtifact(k artifactKey, f store.Figures) {
	p.ranking.SetArtifact(k.role, k.method, f)
	p.index.lags = true
}

func (p *catalog) dropArtifact(k artifactKey) {
	p.ranking.DropArtifact(k.role, k.method)
	p.index.lags = true
}

// methods returns the methods of a role that have an artifact, sorted.
func (p *catalog) methods(role string) []string {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return p.ranking.Methods(role)
}

// tool returns the registered tool of a role, or nil.
func (p *catalog) tool(role string) *agent.Tool {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return p.ranking.Tool(role)
}

// Tool is part of store.Namespace.
func (p *catalog) Tool(_ context.Context, role string) (agent.Tool, error) {
	if t := p.tool(role); t != nil {
		return *t, nil
	}
	return agent.Tool{}, store.ErrNotFound
}

// ListTools is part of store.Namespace.
func (p *catalog) ListTools(_ context.Context, after string, limit int) ([]agent.Tool, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	i, found := slices.BinarySearch(p.roles, after)
	if found {
		i++
	}
	out := []agent.Tool{}
	for ; i < len(p.roles) && len(out) < limit; i++ {
		out = append(out, *p.ranking.Tool(p.roles[i]))
	}
	return out, nil
}

// RankTools is part of store.Namespace.
func (p *catalog) RankTools(_ context.Context, now time.Time, limit int) ([]store.RankedTool, error) {
	// Asking for the ranking updates it for what has become stale.
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	return p.ranking.Top(now, limit), nil
}

// RankedTool is part of store.Namespace.
func (p *catalog) RankedTool(_ context.Context, role string, now time.Time) (store.RankedTool, error) {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	t, ok := p.ranking.Of(role, now)
	if !ok {
		return t, fmt.Errorf("%w: tool %s", store.ErrNotFound, role)
	}
	return t, nil
}

// PutTool is part of store.Namespace.
func (p *catalog) PutTool(ctx context.Context, t agent.Tool, revision int64,
	audit *agent.AuditEntry) (agent.Tool, error) {
	e := p.n.newEntry()
	e.Audit = audit
	err := p.n.commit(ctx, &commit{entry: e, check: func() (err error) {
		e.Put, err = store.ReplaceTool(p.n.plannedTool(t.Role), t, revision, p.n.now())
		return err
	}})
	if err != nil {
		return agent.Tool{}, err
	}
	return *e.Put, nil
}
