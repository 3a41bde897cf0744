package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
)

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
			v.problem("files", "file %s of namespace %d has other bytes than its digest says", file.a, file.ns)
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
