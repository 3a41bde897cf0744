package disk

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// namespaceVerifier verifies one namespace.
type namespaceVerifier struct {
	*verifier
	files      *files
	referenced map[string]bool // programs that artifacts refer to and that were not found yet
	names      []string        // names of roles and of methods, to compare their forms
}

func (v *namespaceVerifier) all() error {
	for _, walk := range []func() error{v.documents, v.artifacts, v.programs, v.sessions, v.lines, v.audit, v.streams} {
		if err := walk(); err != nil {
			return err
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
	}
	v.r.OtherForms = append(v.r.OtherForms, agent.OtherForms(v.names)...)
	return nil
}

func (v *namespaceVerifier) problem(name, format string, args ...any) {
	v.verifier.problem(v.files.path(name), format, args...)
}

func (v *namespaceVerifier) documents() error {
	var reg registryDoc
	var pol policyDoc
	var conns connectionsDoc
	var spent spendDoc
	for _, d := range []struct {
		name  string
		doc   any
		check func() error
	}{
		{registryFile, &reg, func() error {
			v.r.Tools += len(reg.Tools)
			v.names = slices.Sorted(maps.Keys(reg.Tools))
			return checkRegistry(&reg)
		}},
		{policyFile, &pol, func() error { _, err := decodePolicy(pol.Policy); return err }},
		{patternsFile, &patternsDoc{}, nil},
		{evidenceFile, &evidenceDoc{}, nil},
		{contentFile, &contentDoc{}, nil},
		{connectionsFile, &conns, func() error { return checkConnections(&conns) }},
		{spendFile, &spent, func() error { return checkSpend(&spent) }},
	} {
		ok, err := v.doc(v.files, d.name, d.doc)
		if err != nil {
			return err
		}
		if ok && d.check != nil {
			if err := d.check(); err != nil {
				v.problem(d.name, "%v", err)
			}
		}
	}
	return nil
}

func (v *namespaceVerifier) artifacts() error {
	found := map[string]bool{}
	err := eachArtifactFile(v.files, func(name string) error {
		doc := artifactDoc{}
		ok, err := v.doc(v.files, name, &doc)
		if err != nil || !ok {
			return err
		}
		if doc.Artifact == nil {
			v.problem(name, "holds no artifact")
			return nil
		}
		v.artifact(name, &doc)
		found[name] = true
		return nil
	})
	if err != nil || v.replayed {
		return err
	}
	return v.index(found)
}

func (v *namespaceVerifier) artifact(name string, doc *artifactDoc) {
	v.r.Artifacts++
	v.names = append(v.names, doc.Role+"."+doc.MethodName)
	k := artifactKey{role: doc.Role, method: doc.MethodName}
	if k.file() != name {
		v.problem(name, "holds %s.%s, which belongs in %s", doc.Role, doc.MethodName, k.file())
	}
	if err := doc.check(); err != nil {
		v.problem(name, "%v", err)
	}
	if sum := doc.IntrinsicFailureCount + doc.AdaptiveFailureCount +
		doc.ExtrinsicFailureCount; sum != doc.FailureCount {
		v.problem(name, "failure_count is %d, its classes add up to %d", doc.FailureCount, sum)
	}
	for _, g := range doc.Held() {
		if g != nil {
			v.referenced[g.CodeChecksum] = true
		}
	}
}

// index compares the index with the artifacts that were found.
func (v *namespaceVerifier) index(found map[string]bool) error {
	var index indexDoc
	ok, err := v.doc(v.files, indexFile, &index)
	if err != nil || !ok {
		return err
	}
	for role, methods := range index.Artifacts {
		for method := range methods {
			name := artifactKey{role: role, method: method}.file()
			if !found[name] {
				v.problem(indexFile, "names %s, which is missing", name)
			}
			delete(found, name)
		}
	}
	for name := range found {
		v.problem(indexFile, "does not name %s", name)
	}
	return nil
}

func (v *namespaceVerifier) programs() error {
	err := v.files.eachProgram(func(name, checksum string, intact bool) error {
		v.r.Programs++
		if !intact {
			v.problem(name, "the text does not match its name")
		}
		delete(v.referenced, checksum)
		return nil
	})
	if err != nil || v.replayed {
		return err
	}
	for sum := range v.referenced {
		if name, ok := programFile(sum); ok {
			v.problem(name, "is missing, but an artifact refers to it")
		}
	}
	return nil
}

func (v *namespaceVerifier) sessions() error {
	ids, err := v.files.list("sessions")
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if isCorruptName(id) {
			continue
		}
		if err := v.session(id); err != nil {
			return err
		}
	}
	return nil
}

func (v *namespaceVerifier) session(id string) error {
	v.r.Sessions++
	doc := sessionDoc{}
	ok, err := v.doc(v.files, sessionFile(id), &doc)
	if err != nil {
		return err
	}
	data, _, err := v.files.readFound(historyFile(id))
	if err != nil {
		return err
	}
	good, size, damaged := soundLines(data, int64(len(data)))
	v.r.Records += strings.Count(string(good), "\n")
	switch {
	case damaged || len(good) != len(data):
		v.problem(historyFile(id), "lines are damaged, or out of order")
	case ok && doc.ID != id:
		v.problem(sessionFile(id), "holds the session %q", doc.ID)
	case ok && !v.replayed && (size != doc.HistorySize || size != doc.SyncedRecords ||
		int64(len(data)) != doc.SyncedBytes):
		v.problem(sessionFile(id), "counts %d records in %d bytes, but the history has %d in %d", doc.HistorySize,
			doc.SyncedBytes, size, len(data))
	case !ok && !v.replayed && len(data) == 0:
		v.problem(sessionDir(id), "holds no session")
	}
	return nil
}

// lines verifies that the lines of the logs parse.
func (v *namespaceVerifier) lines() error {
	names := []string{callLogFile}
	for _, dir := range []string{"calls", "values"} {
		found, err := v.files.list(dir)
		if err != nil {
			return err
		}
		for _, name := range found {
			if strings.HasSuffix(name, ".jsonl") {
				names = append(names, path.Join(dir, name))
			}
		}
	}
	for _, name := range names {
		data, found, err := v.files.readFound(name)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		v.linesOf(name, string(data))
	}
	return nil
}

func (v *namespaceVerifier) linesOf(name, data string) {
	lines := strings.Split(data, "\n")
	for i, line := range lines {
		if len(line) == 0 {
			continue
		}
		if torn := v.replayed && i == len(lines)-1; !torn && !json.Valid([]byte(line)) {
			v.problem(name, "line %d does not parse", i+1)
		}
		if strings.HasPrefix(name, "calls") {
			v.r.Calls++
		}
	}
}
