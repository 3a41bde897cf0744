package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Report is the result of Verify.
type Report struct {
	Sessions, Records, Artifacts, Programs, Tools, Calls int
	Problems                                             []string // broken invariants, each with its table
	Audit                                                []AuditReport
	// roles and methods whose names are not in Unicode's normal form C, in which names are stored now
	OtherForms []string
}

// AuditReport is what Verify read from the audit trail of one namespace.
type AuditReport struct {
	Namespace                agent.Namespace
	Entries, Earlier, Erased int64 // linked entries; unlinked ones from an earlier version; linked ones without a body
	Head                     chain.Head
}

// mostProblems is the maximum number of problems reported per kind.
const mostProblems = 100

// invariants are queries for rows that must not exist. Each row is a text that describes one.
var invariants = []struct{ table, query string }{
	{"records", `SELECT format('session %s of namespace %s has %s records numbered %s to %s; its size is %s', s.id, s.ns, coalesce(r.count, 0), r.first, r.last, s.history_size)
		FROM sessions s LEFT JOIN (SELECT ns, session, count(*), min(seq) AS first, max(seq) AS last FROM records GROUP BY ns, session) r ON r.ns = s.ns AND r.session = s.id
		WHERE s.history_size <> coalesce(r.count, 0) OR r.count > 0 AND (r.first <> 1 OR r.last <> r.count)`},
	{"artifacts", `SELECT format('%s.%s of namespace %s has a head or a body only', role, method, ns) FROM artifacts a FULL JOIN artifact_bodies b USING (ns, role, method)
		WHERE a.head IS NULL OR b.body IS NULL`},
	{"ranks", `SELECT format('role %s of namespace %s is registered and has no rank, or the other way round', role, ns) FROM tools t
		FULL JOIN (SELECT * FROM ranks WHERE tool_used IS NOT NULL) r USING (ns, role) WHERE t.revision IS NULL OR r.used IS NULL`},
	{"ranks", `SELECT format('role %s of namespace %s counts %s artifacts; there are %s', role, ns, coalesce(degraded + candidate + probation + durable, 0), coalesce(a.count, 0))
		FROM ranks r FULL JOIN (SELECT ns, role, count(*) FROM artifacts GROUP BY ns, role) a USING (ns, role)
		WHERE coalesce(degraded + candidate + probation + durable, 0) <> coalesce(a.count, 0)`},
	{"files", `SELECT format('file %s of namespace %s has %s bytes, not %s', f.id, f.ns, coalesce(p.bytes, 0), f.bytes) FROM files f LEFT JOIN blobs b ON b.id = f.blob AND b.file = f.id AND b.ns = f.ns
		LEFT JOIN (SELECT blob, sum(octet_length(data)) AS bytes FROM pieces GROUP BY blob) p ON p.blob = b.id WHERE b.id IS NULL OR coalesce(p.bytes, 0) <> f.bytes`},
	{"file_bytes", `SELECT format('%s of namespace %s counts %s bytes; the files have %s', holder, ns, coalesce(b.bytes, 0), coalesce(f.bytes, 0)) FROM file_bytes b
		FULL JOIN (SELECT ns, file_holder(session, owner) AS holder, sum(bytes) AS bytes FROM files WHERE NOT internal GROUP BY 1, 2) f USING (ns, holder) WHERE coalesce(b.bytes, 0) <> coalesce(f.bytes, 0)`},
	{"file_totals", `SELECT format('all files have %s bytes; %s are counted', f.bytes, t.bytes) FROM (SELECT coalesce(sum(bytes), 0) AS bytes FROM files) f,
		(SELECT coalesce(sum(bytes), 0) AS bytes FROM file_totals) t WHERE f.bytes <> t.bytes`},
	{"pieces", `SELECT format('%s pieces of blob %s belong to nothing', count(*), blob) FROM pieces p WHERE NOT EXISTS (SELECT 1 FROM blobs b WHERE b.id = p.blob) GROUP BY blob`},
	{"blobs", `SELECT format('blob %s says it is file %s, which has another one', b.id, b.file) FROM blobs b WHERE b.file IS NOT NULL AND NOT EXISTS (SELECT 1 FROM files f WHERE f.blob = b.id AND f.ns = b.ns)`},
	{"calls", `SELECT format('call %s of namespace %s was corrected by %s, which does not say so or is not there', c.call_id, c.ns, c.corrected_by) FROM calls c
		WHERE c.corrected_by <> '' AND NOT EXISTS (SELECT 1 FROM calls x WHERE x.ns = c.ns AND x.call_id = c.corrected_by) AND c.n > (SELECT min(n) FROM calls m WHERE m.ns = c.ns)`},
	{"spend_rows", `SELECT format('day %s of namespace %s counts below 0', day, ns) FROM spend_rows WHERE calls < 0 OR warm < 0 OR warm > calls`},
}

// orphans are tables whose rows belong to the session in the column session, unless it is "".
var orphans = []string{"session_context", "records", "call_values", "replies", "patterns", "files"}

// NotedHead is the hash of an audit entry that somebody recorded outside of the store.
type NotedHead struct {
	Namespace agent.Namespace
	Hash      string
}

// Verify reads everything in one snapshot and reports broken invariants. It changes nothing, and daemons may use the
// store meanwhile. It also reports each noted hash that no entry of the audit trails has.
func (s *Store) Verify(ctx context.Context, noted ...NotedHead) (r Report, err error) {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return r, unavailable(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // it only reads
	v := &verifier{Tx: tx, r: &r, noted: map[NotedHead]bool{}}
	for _, n := range noted {
		v.noted[n] = true
	}
	err = v.all(ctx)
	for n := range v.noted {
		v.problem("audit", "no entry of namespace %s has the noted hash %s: the trail was cut off or altered",
			n.Namespace, n.Hash)
	}
	slices.Sort(r.Problems)
	return r, err
}

// verifier runs the checks of Verify in one read-only transaction.
type verifier struct {
	pgx.Tx
	r     *Report
	held  map[rowKey]bool    // programs that artifacts refer to, by namespace and checksum
	noted map[NotedHead]bool // hashes not found in any trail yet
}

func (v *verifier) all(ctx context.Context) error {
	for _, step := range []func(context.Context) error{v.counts, v.rows, v.names, v.documents, v.files, v.artifacts,
		v.programs, v.trails} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) problem(table, format string, args ...any) {
	v.r.Problems = append(v.r.Problems, table+": "+fmt.Sprintf(format, args...))
}

func (v *verifier) counts(ctx context.Context) error {
	r := v.r
	return v.QueryRow(ctx, `SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM records), (SELECT count(*) FROM artifacts), (SELECT count(*) FROM programs),
		(SELECT count(*) FROM tools), (SELECT count(*) FROM calls)`).Scan(&r.Sessions, &r.Records, &r.Artifacts, &r.Programs, &r.Tools, &r.Calls)
}

// rows checks the invariants, and looks for rows whose session or namespace does not exist.
func (v *verifier) rows(ctx context.Context) error {
	list := slices.Concat(invariants, storedInvariants)
	for _, table := range orphans {
		list = append(list, struct{ table, query string }{table,
			"SELECT format('%s rows of session %s of namespace %s, which is missing', count(*), x.session, x.ns) " +
				"FROM " + table +
				" x WHERE x.session <> '' AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.ns = x.ns AND s.id = x.session) GROUP BY x.ns, x.session"})
	}
	for _, table := range append([]string{"blobs"}, spaceTables...) {
		but := ""
		if table == "spend_chunks" || table == "stored" {
			but = fmt.Sprintf(" AND x.ns <> %d", none) // none stands for all namespaces
		}
		list = append(list, struct{ table, query string }{table,
			"SELECT format('%s rows of namespace %s, which is missing', count(*), x.ns) FROM " + table +
				" x WHERE NOT EXISTS (SELECT 1 FROM namespaces n WHERE n.id = x.ns)" + but + " GROUP BY x.ns"})
	}
	for _, i := range list {
		rows, err := v.Query(ctx, i.query+fmt.Sprintf(" LIMIT %d", mostProblems))
		if err != nil {
			return fmt.Errorf("%s: %w", i.table, err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("%s: %w", i.table, err)
		}
		for _, text := range found {
			v.problem(i.table, "%s", text)
		}
	}
	return nil
}

// programs compares the texts of programs with their checksums.
func (v *verifier) programs(ctx context.Context) error {
	rows, err := v.Query(ctx, "SELECT ns, checksum, code FROM programs")
	if err != nil {
		return err
	}
	missing := v.held
	var k rowKey
	var code []byte
	if _, err := pgx.ForEachRow(rows, []any{&k.ns, &k.a, &code}, func() error {
		if key(agent.Checksum(string(code))) != k.a {
			v.problem("programs", "the text of %s of namespace %d does not match its name", k.a, k.ns)
		}
		delete(missing, k)
		return nil
	}); err != nil {
		return err
	}
	for k := range missing {
		v.problem("programs", "an artifact of namespace %d refers to %s, which is missing", k.ns, k.a)
	}
	return nil
}

// artifacts checks that the parts of each artifact match, its checksums and counters, and that the ranks are their
// sums.
func (v *verifier) artifacts(ctx context.Context) error {
	rows, err := v.Query(ctx,
		"SELECT a.ns, a.role, a.method, a.state, a.head, b.body FROM artifacts a JOIN artifact_bodies b USING (ns, role, method)")
	if err != nil {
		return err
	}
	v.held = map[rowKey]bool{}
	sums := map[rowKey]*[2]int64{}
	var k rowKey
	var state string
	var head, body []byte
	if _, err := pgx.ForEachRow(rows, []any{&k.ns, &k.a, &k.b, &state, &head, &body}, func() error {
		a, err := decodeArtifact(head, body)
		if err != nil {
			v.problem("artifacts", "%s.%s of namespace %d: %v", k.a, k.b, k.ns, err)
			return nil
		}
		v.artifact(k, a)
		if key(a.LifecycleState) != state {
			v.problem("artifacts", "%s.%s of namespace %d is %s in its row and %s in its head", k.a, k.b, k.ns, state,
				a.LifecycleState)
		}
		role := rowKey{ns: k.ns, a: k.a}
		if sums[role] == nil {
			sums[role] = &[2]int64{}
		}
		f := store.FiguresOf(a)
		sums[role][0] += f.Success
		sums[role][1] += f.Failure
		return nil
	}); err != nil {
		return err
	}
	return v.sums(ctx, sums)
}

func (v *verifier) artifact(k rowKey, a *agent.Artifact) {
	name := fmt.Sprintf("%s.%s of namespace %d", a.Role, a.MethodName, k.ns)
	if methodKey(k.ns, a.Role, a.MethodName) != k {
		v.problem("artifacts", "%s is stored as %s.%s", name, k.a, k.b)
	}
	if sum := a.IntrinsicFailureCount + a.AdaptiveFailureCount + a.ExtrinsicFailureCount; sum != a.FailureCount {
		v.problem("artifacts", "%s counts %d failures, its classes add up to %d", name, a.FailureCount, sum)
	}
	for _, g := range a.Held() {
		if g == nil || agent.Checksum(g.Code) != g.CodeChecksum {
			v.problem("artifacts", "%s has a generation whose checksum is wrong", name)
			continue
		}
		v.held[rowKey{ns: k.ns, a: key(g.CodeChecksum)}] = true
	}
}

// sums compares the ranks with the figures of the artifacts.
func (v *verifier) sums(ctx context.Context, sums map[rowKey]*[2]int64) error {
	rows, err := v.Query(ctx, "SELECT ns, role, success, failure FROM ranks")
	if err != nil {
		return err
	}
	var k rowKey
	var success, failure int64
	_, err = pgx.ForEachRow(rows, []any{&k.ns, &k.a, &success, &failure}, func() error {
		want := [2]int64{}
		if s := sums[k]; s != nil {
			want = *s
		}
		if want != [2]int64{success, failure} {
			v.problem("ranks", "role %s of namespace %d counts %d successes and %d failures; its artifacts have %d and %d", k.a, k.ns, success, failure, want[0], want[1])
		}
		return nil
	})
	return err
}

// trails checks the chain of each namespace's audit trail.
func (v *verifier) trails(ctx context.Context) error {
	rows, err := v.Query(ctx,
		"SELECT n.id, n.name, coalesce(h.seq, 0), coalesce(h.hash, '') FROM namespaces n LEFT JOIN audit_heads h ON h.ns = n.id ORDER BY n.name")
	if err != nil {
		return err
	}
	type trail struct {
		ns   int64
		name string
		head chain.Head
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t trail, err error) {
		return t, row.Scan(&t.ns, &t.name, &t.head.Seq, &t.head.Hash)
	})
	if err != nil {
		return err
	}
	for _, t := range list {
		if err := v.trail(ctx, t.ns, agent.Namespace(t.name), t.head); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) trail(ctx context.Context, ns int64, name agent.Namespace, head chain.Head) error {
	rows, err := v.Query(ctx, "SELECT n, id, session, line FROM audit WHERE ns = $1 ORDER BY n", ns)
	if err != nil {
		return err
	}
	c := chain.NewVerifier(name, func(h chain.Head) { delete(v.noted, NotedHead{name, h.Hash}) })
	var n int64
	var id, session string
	var line []byte
	if _, err := pgx.ForEachRow(rows, []any{&n, &id, &session, &line}, func() error {
		c.Add(line)
		var e agent.AuditEntry
		if json.Unmarshal(line, &e) == nil && (key(e.ID) != id || key(e.SessionID) != session || e.Seq != 0 &&
			e.Seq != n) {
			v.problem("audit", "entry %d of namespace %s is in the row of another entry", n, name)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, found := range c.Found {
		v.problem("audit", "namespace %s: %s", name, found)
	}
	if c.Next() != head && (c.Entries > 0 || head.Begun()) {
		v.problem("audit", "the trail of namespace %s ends with entry %d, but its head names entry %d",
			name, c.Head.Seq, head.Seq)
	}
	if c.Entries+c.Earlier > 0 {
		v.r.Audit = append(v.r.Audit, AuditReport{name, c.Entries, c.Earlier, c.Erased, c.Head})
	}
	return nil
}

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
					v.problem(d.table, "row %s %v of namespace %d has %q, but its document has %q", place, columns,
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

// files reads the bytes of all files, one piece at a time, and compares them with the digests. rows compares their
// sizes.
func (v *verifier) files(ctx context.Context) error {
	rows, err := v.Query(ctx,
		"SELECT f.ns, f.id, f.doc, p.data FROM files f JOIN pieces p ON p.blob = f.blob ORDER BY f.blob, f.ns, f.id, p.n")
	if err != nil {
		return err
	}
	var k, file rowKey
	var doc, data []byte
	var said string
	sum := sha256.New()
	end := func() {
		if said != "" && said != hex.EncodeToString(sum.Sum(nil)) {
			v.problem("files", "file %s of namespace %d does not match its digest", file.a, file.ns)
		}
	}
	if _, err := pgx.ForEachRow(rows, []any{&k.ns, &k.a, &doc, &data}, func() error {
		if k != file {
			end()
			var f agent.File
			_ = json.Unmarshal(doc, &f) // documents reports what is wrong with it
			file, said = k, f.SHA256
			sum.Reset()
		}
		sum.Write(data)
		return nil
	}); err != nil {
		return err
	}
	end()
	return nil
}

// names looks for names that are not in Unicode's normal form C. An earlier version stored names unchanged.
func (v *verifier) names(ctx context.Context) error {
	rows, err := v.Query(ctx,
		`SELECT array_agg(name ORDER BY name) FROM (SELECT ns, role AS name FROM tools UNION SELECT ns, role || '.' || method FROM artifacts) x GROUP BY ns`)
	if err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[[]string])
	if err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	for _, names := range all {
		v.r.OtherForms = append(v.r.OtherForms, agent.OtherForms(names)...)
	}
	return nil
}
