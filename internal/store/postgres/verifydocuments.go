package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// documents are the tables whose rows hold a document, with the columns that repeat its fields. Artifacts and the audit
// trail have their own checks.
var documents = []struct {
	table, rows, columns, doc string
	says                      func(doc []byte) ([]string, error)
}{
	{"sessions", "sessions", "id, owner", "doc",
		says(func(s *agent.Session) []string { return []string{s.ID, owner(s)} })},
	{"session_context", "session_context", "", "value", anything},
	{"records", "records", "seq, call_id, role, method, status", "doc", says(func(r *agent.Record) []string {
		return []string{strconv.Itoa(r.Seq), r.CallID, r.Role, r.MethodName, r.OutcomeSummary.Status}
	})},
	{"calls", "calls", "call_id, session, root, parent, trace, role, method, status, error_type, source", "doc",
		says(func(e *agent.LogEntry) []string {
			return []string{e.CallID, e.SessionID, e.RootCallID, e.ParentCallID, e.TraceID, e.Role, e.Method,
				e.OutcomeStatus, e.OutcomeErrorType, e.ProgramSource}
		})},
	{"call_values", "call_values", "", "outcome", anything},
	{"call_values", "call_values", "", "effects", anything},
	{"replies", "replies", "", "reply", anything},
	{"contents", "contents", "", "value", anything},
	{"patterns", "patterns", "role, session", "doc",
		says(func(p *agent.PatternEvent) []string { return []string{p.Role, p.SessionID} })},
	{"evidence", "evidence", "role, method", "doc",
		says(func(m *agent.MethodEvidence) []string { return []string{m.Role, m.Method} })},
	{"tools", "tools", "role", "doc", says(func(t *agent.Tool) []string { return []string{t.Role} })},
	{"policies", "policies", "", "doc", anything},
	{"connections", "connections", "name", "doc", says(func(c *agent.Connection) []string { return []string{c.Name} })},
	{"archive", "archive WHERE tool", "role", "doc", says(func(t *agent.Tool) []string { return []string{t.Role} })},
	{"archive", "archive WHERE NOT tool", "role, method", "doc",
		says(func(a *agent.Artifact) []string { return []string{a.Role, a.MethodName} })},
	{"files", "files", "id, owner, session, bytes", "doc", says(func(f *agent.File) []string {
		return []string{f.ID, f.Owner, f.SessionID, strconv.FormatInt(f.Bytes, 10)}
	})},
	{"spend_rows", "spend_rows", "", "models", anything},
	{"spend_open", "spend_open", "id", "doc", says(func(s *agent.Spend) []string { return []string{s.ID} })},
	{"spend_forges", "spend_forges", "hash", "doc",
		says(func(r *agent.ForgeRow) []string { return []string{rowHash(r.Role, r.Method, r.Model)} })},
}

// says returns a function that decodes a document and returns the values of its columns.
func says[D any](columns func(*D) []string) func([]byte) ([]string, error) {
	return func(doc []byte) ([]string, error) {
		d := new(D)
		err := json.Unmarshal(doc, d)
		return columns(d), err
	}
}

// agree reports whether a column has the value in the document. A digest is not compared, because the original bytes
// may not survive in a JSON document.
func agree(said, column string) bool { return said == column || strings.HasPrefix(column, odd) }

// anything accepts any JSON document without repeated columns.
func anything(doc []byte) ([]string, error) {
	var d json.RawMessage
	return nil, json.Unmarshal(doc, &d)
}

// documents decodes every document and compares it with the columns of its row.
func (v *verifier) documents(ctx context.Context) error {
	for _, d := range documents {
		rows, err := v.Query(ctx, fmt.Sprintf("SELECT ctid::text, ns, ARRAY[%s]::text[], %s FROM %s", d.columns, d.doc,
			d.rows))
		if err != nil {
			return fmt.Errorf("%s: %w", d.table, err)
		}
		var place string
		var ns int64
		var columns []string
		var doc []byte
		found := 0
		if _, err := pgx.ForEachRow(rows, []any{&place, &ns, &columns, &doc}, func() error {
			if doc == nil || found == mostProblems {
				return nil
			}
			said, err := d.says(doc)
			if err != nil {
				found++
				v.problem(d.table, "the %s of row %s %v of namespace %d does not parse: %v", d.doc, place, columns, ns,
					err)
				return nil
			}
			for i, text := range keys(said) {
				if !agree(text, columns[i]) {
					found++
					v.problem(d.table, "row %s %v of namespace %d says %q where its document says %q", place, columns,
						ns, columns[i], said[i])
				}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("%s: %w", d.table, err)
		}
	}
	return nil
}
