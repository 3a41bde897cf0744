// Command mcpgo is a client of MCP made with mark3labs/mcp-go: mcpgo VERSION URL, or mcpgo VERSION COMMAND ARGUMENT...
// It prints "waiting" when it has heard of the progress of a call that has no end yet, and "fine" at the end.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
	fmt.Println("fine")
}

type agent struct {
	*client.Client
}

// An outcome is what the results of calls have in common with those of new_session.
type outcome struct {
	ID        string `json:"id"`
	Value     any    `json:"value"`
	ErrorType string `json:"error_type"`
}

func run(ctx context.Context, version string, target []string) error {
	a, err := connect(ctx, version, target)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.lists(ctx, []string{"call_method", "find_tools", "judge_call", "new_session", "upload_file"}); err != nil {
		return err
	}
	steps := []struct {
		tool string
		args map[string]any
		want any
	}{
		{"call_method", map[string]any{"role": "calculator", "method": "add", "args": []any{2, 3}}, 5.0},
		{"calculator__add", map[string]any{"a": 20, "b": 22}, 42.0},
		{"call_method", map[string]any{"role": "shop", "method": "sell", "args": []any{1}}, "sold"},
	}
	for _, s := range steps {
		if err := a.answers(ctx, s.tool, s.args, nil, s.want); err != nil {
			return err
		}
	}
	if err := a.lists(ctx, []string{"calculator__add", "call_method", "find_tools", "judge_call", "new_session",
		"shop__sell", "upload_file"}); err != nil {
		return err
	}
	if err := a.remembers(ctx); err != nil {
		return err
	}
	if err := a.fails(ctx); err != nil {
		return err
	}
	return a.waits(ctx)
}

func connect(ctx context.Context, version string, target []string) (agent, error) {
	var t transport.Interface = transport.NewStdio(target[0], os.Environ(), target[1:]...)
	if strings.HasPrefix(target[0], "http") {
		headers := map[string]string{"Authorization": "Bearer " + os.Getenv("RECURGENT_TOKEN")}
		var err error
		if t, err = transport.NewStreamableHTTP(target[0], transport.WithHTTPHeaders(headers)); err != nil {
			return agent{}, err
		}
	}
	a := agent{client.NewClient(t, client.WithProtocolVersion(version))}
	if err := a.Start(ctx); err != nil {
		return a, err
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ClientInfo = mcp.Implementation{Name: "test", Version: "1"}
	server, err := a.Initialize(ctx, hello)
	if err == nil && (server.ServerInfo.Name != "recurgentd" || server.ProtocolVersion != version) {
		err = fmt.Errorf("connected to %s of %s", server.ServerInfo.Name, server.ProtocolVersion)
	}
	return a, err
}

func (a agent) lists(ctx context.Context, want []string) error {
	list, err := a.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return err
	}
	got := map[string]bool{}
	for _, tool := range list.Tools {
		got[tool.Name] = true
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		return fmt.Errorf("listed %v, want %v", names, want)
	}
	return nil
}

func (a agent) call(ctx context.Context, tool string, args any, meta *mcp.Meta) (outcome, bool, error) {
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments, request.Params.Meta = tool, args, meta
	result, err := a.CallTool(ctx, request)
	if err != nil {
		return outcome{}, false, fmt.Errorf("%s: %w", tool, err)
	}
	text, err := json.Marshal(result.StructuredContent)
	var out outcome
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, result.IsError, err
}

func (a agent) answers(ctx context.Context, tool string, args any, meta *mcp.Meta, want any) error {
	out, failed, err := a.call(ctx, tool, args, meta)
	if err == nil && (failed || out.Value != want) {
		err = fmt.Errorf("%s: got %+v, want %v", tool, out, want)
	}
	return err
}

// remembers makes calls that share a memory.
func (a agent) remembers(ctx context.Context) error {
	begin := map[string]any{"role": "calculator", "context": map[string]any{"value": 7}}
	session, _, err := a.call(ctx, "new_session", begin, nil)
	if err != nil {
		return err
	}
	increment := map[string]any{"role": "calculator", "method": "increment"}
	in := &mcp.Meta{AdditionalFields: map[string]any{"recurgent/session_id": session.ID}}
	for _, want := range []float64{8, 9} {
		if err := a.answers(ctx, "call_method", increment, in, want); err != nil {
			return err
		}
	}
	return nil
}

// fails makes a call that fails, and calls what is not there.
func (a agent) fails(ctx context.Context) error {
	out, failed, err := a.call(ctx, "shop__sell", map[string]any{"n": 0}, nil)
	if err != nil || !failed || out.ErrorType != "not_today" {
		return fmt.Errorf("shop__sell: %+v, %t, %v", out, failed, err)
	}
	if _, _, err := a.call(ctx, "no_such_tool", nil, nil); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		return fmt.Errorf("no_such_tool: %v", err)
	}
	return nil
}

// waits makes a call that takes until somebody has read that it waits.
func (a agent) waits(ctx context.Context) error {
	heard := make(chan string, 100)
	a.OnNotification(func(n mcp.JSONRPCNotification) {
		if n.Method == "notifications/progress" && n.Params.AdditionalFields["progressToken"] == "long" {
			message, _ := n.Params.AdditionalFields["message"].(string)
			heard <- message
		}
	})
	ended := make(chan error, 1)
	go func() {
		args := map[string]any{"role": "shop", "method": "slow", "args": []any{2, 3}}
		ended <- a.answers(ctx, "call_method", args, &mcp.Meta{ProgressToken: "long"}, 5.0)
	}()
	for {
		select {
		case message := <-heard:
			if message == "a model writes the program" {
				fmt.Println("waiting")
				return <-ended
			}
		case err := <-ended:
			return fmt.Errorf("it ended before it was heard of: %v", err)
		}
	}
}
