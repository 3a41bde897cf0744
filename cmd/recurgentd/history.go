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
	var asLines bool
	var limit int
	c := &cobra.Command{
		Use:   "history SESSION",
		Short: "Print a session's history as a conversation",
		Long: `Print a session's history as a conversation, oldest first: who asked what, and how it ended.
Values are not part of a history, only their class. With --json it prints one record a line.`,
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
			return exitWith(exitUnreachable, printHistory(ctx, sh, newClient(o), args[0], limit, asLines))
		},
	}
	c.Flags().BoolVar(&asLines, "json", false, "print records as JSON lines")
	c.Flags().IntVar(&limit, "last", 0, "print only the newest records; 0 prints all")
	addFlags(clientScope, c.Flags())
	return c
}

// printHistory reads page after page, so that a long history needs no more memory than a short one.
func printHistory(ctx context.Context, sh shell, c *client, session string, last int, asLines bool) error {
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
			line := string(raw)
			if !asLines {
				var r agent.Record
				if err := json.Unmarshal(raw, &r); err != nil {
					return fmt.Errorf("a record is not what a recurgentd answers: %w", err)
				}
				line = conversation(r)
			}
			if _, err := fmt.Fprintln(sh.stdout, line); err != nil {
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

// conversation tells a record in two lines: what was asked, and how it ended.
func conversation(r agent.Record) string {
	indent := strings.Repeat("  ", min(r.Depth, 20))
	asked := arguments(r)
	if len(r.Kwargs) > len("{}") {
		asked = strings.TrimPrefix(asked+", "+oneLine(string(r.Kwargs)), ", ")
	}
	end := r.OutcomeSummary.ValueClass
	if !r.OutcomeSummary.OK {
		end = r.ErrorType + ": " + oneLine(r.ErrorMessage)
	}
	return plainText(fmt.Sprintf("%s%4d  %s  %s: %s.%s(%s)\n%s      -> %s (%s, %.1f ms)", indent, r.Seq, r.Timestamp, r.Speaker, r.Role, r.MethodName, asked,
		indent, end, r.ProgramSource, r.DurationMs))
}

// plainText replaces control characters: records hold strangers' text, and a terminal obeys it.
func plainText(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0) {
			return '\uFFFD'
		}
		return r
	}, text)
}
