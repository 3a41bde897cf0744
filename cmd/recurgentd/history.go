package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
)

func historyCommand(sh shell) *cobra.Command {
	var limit int
	var out *output
	c := &cobra.Command{
		Use:   "history SESSION",
		Short: "Print a session's history as a conversation",
		Long: `Print a session's history as a conversation, oldest first: who asked what, and how it ended.
Values are not part of a history, only their class. With --output json it prints one record a line.

` + exitsOfClients,
		Example: `  recurgentd history sess_06gzqwq081srb0e6zx42fm96t4
  recurgentd history sess_06gzqwq081srb0e6zx42fm96t4 --json > history.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := loadOptions(clientScope, cmd.Flags(), sh.env)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			if limit < 0 {
				return exitWith(exitUsage, errors.New("--last must not be negative"))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return exitWith(exitUnreachable, printHistory(ctx, newClient(o), out, args[0], limit))
		},
	}
	out = addOutput(c, sh)
	c.Flags().IntVar(&limit, "last", 0, "print only the newest records; 0 prints all")
	addFlags(clientScope, c.Flags())
	return c
}

// printHistory reads page after page, so that a long history needs no more memory than a short one.
func printHistory(ctx context.Context, c *client, out *output, session string, last int) error {
	base := "/v1/sessions/" + url.PathEscape(session) + "/history?order=asc&limit=1000"
	after := 0
	if last > 0 {
		var s struct {
			Size int `json:"history_size"`
		}
		if err := c.get(ctx, "/v1/sessions/"+url.PathEscape(session), &s); err != nil {
			return err
		}
		after = max(0, s.Size-last)
	}
	for {
		var page struct {
			Data []json.RawMessage `json:"data"`
			Next *string           `json:"next_cursor"`
		}
		if err := c.get(ctx, base+"&after="+strconv.Itoa(after), &page); err != nil {
			return err
		}
		for _, raw := range page.Data {
			if err := printRecord(out, raw); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		next, err := strconv.Atoi(*page.Next)
		if err != nil || next <= after {
			return fmt.Errorf("the daemon's next_cursor %q is no page further on", *page.Next)
		}
		after = next
	}
}

func printRecord(out *output, raw json.RawMessage) error {
	if !out.human() {
		return out.document(raw)
	}
	var r agent.Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("a record is not what a recurgentd answers: %w", err)
	}
	asked, end := conversation(r)
	return out.line("%s\n%s", asked, out.colours().status(r.OutcomeSummary.Status, end))
}

// conversation tells a record in two lines: what was asked, and how it ended.
func conversation(r agent.Record) (asked, ended string) {
	indent := strings.Repeat("  ", min(r.Depth, 20))
	args := arguments(r)
	if len(r.Kwargs) > len("{}") {
		args = strings.TrimPrefix(args+", "+oneLine(string(r.Kwargs)), ", ")
	}
	end := r.OutcomeSummary.ValueClass
	if !r.OutcomeSummary.OK {
		end = r.ErrorType + ": " + oneLine(r.ErrorMessage)
	}
	return plainText(fmt.Sprintf("%s%4d  %s  %s: %s.%s(%s)", indent, r.Seq, r.Timestamp, r.Speaker, r.Role, r.MethodName, args)),
		plainText(fmt.Sprintf("%s      -> %s (%s, %.1f ms)", indent, end, r.ProgramSource, r.DurationMs))
}
