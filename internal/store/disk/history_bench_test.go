package disk

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// longAgo is the time of the first record of a history made by writeHistory. One record follows each second.
var longAgo = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// writeHistory writes the files of a stopped store with one session of that many records. Every hundredth record is an
// error, and only the tenth is of the method rare.
func writeHistory(b testing.TB, dir, id string, records int) {
	b.Helper()
	s := open(b, dir, DefaultOptions())
	if err := s.CreateSession(context.Background(), agent.Session{ID: id, Role: "calculator", CreatedAt: longAgo},
		nil); err != nil {
		b.Fatal(err)
	}
	if err := s.CommitCall(context.Background(), storetest.Forged(storetest.NewCommit(id, "call_0", longAgo),
		"package tool")); err != nil {
		b.Fatal(err)
	}
	if err := s.close(); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(dir + "/" + historyFile(id))
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	size := 0
	for i := range records {
		r := warm(id, int64(i), longAgo).Record
		r.Seq, r.Timestamp = i+1, agent.FormatTime(longAgo.Add(time.Duration(i)*time.Second))
		if i%100 == 99 {
			r.OutcomeSummary.Status, r.OutcomeSummary.OK = agent.StatusError, false
		}
		if i == 9 {
			r.MethodName = "rare"
		}
		line, err := json.Marshal(r)
		if err != nil {
			b.Fatal(err)
		}
		n, _ := w.Write(append(line, '\n')) // Flush returns the error
		size += n
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	doc := sessionDoc{}
	mustRead(b, dir+"/"+sessionFile(id), &doc)
	doc.SyncedBytes, doc.SyncedRecords, doc.HistorySize = int64(size), records, records
	mustWrite(b, dir+"/"+sessionDir(id), "session.json", doc)
}

// BenchmarkHistory measures appending to, paging through and searching a history of 10, 10,000 and 1,000,000 records.
// No cost should grow.
func BenchmarkHistory(b *testing.B) {
	const look = 20_000 // the limit that the interface uses
	for _, records := range []int{10, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			dir, id := b.TempDir(), "sess_h"
			writeHistory(b, dir, id, records)
			s, _ := benchStore(b, dir, 0)
			defer s.close()
			ctx := context.Background()
			middle := longAgo.Add(time.Duration(records/2) * time.Second)
			for _, c := range []struct {
				name string
				q    store.HistoryQuery
				want int // records in the page of the longest history
			}{
				{"page-first", store.HistoryQuery{Limit: 100, Scan: look}, 100},
				{"page-middle", store.HistoryQuery{Limit: 100, Scan: look, After: records / 2}, 100},
				{"page-newest", store.HistoryQuery{Limit: 100, Scan: look, Desc: true}, 100},
				{"newest-errors", store.HistoryQuery{Limit: 100, Scan: look, Desc: true, Status: agent.StatusError},
					100},
				{"a-minute-in-the-middle", store.HistoryQuery{Limit: 100, Scan: look, Since: middle,
					Until: middle.Add(time.Minute)}, 60},
				{"rare-from-the-end", store.HistoryQuery{Limit: 100, Scan: look, Desc: true, Method: "rare"}, 0},
			} {
				b.Run(c.name, func(b *testing.B) {
					for b.Loop() {
						page, err := s.History(ctx, id, c.q)
						if err != nil || records == 1_000_000 && len(page.Records) != c.want {
							b.Fatalf("%d records, %v", len(page.Records), err)
						}
					}
				})
			}
			b.Run("append", func(b *testing.B) {
				n := time.Now().UnixNano()
				for b.Loop() {
					n++
					if err := s.CommitCall(ctx, warm(id, n, time.Now())); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
