package forge

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/store"
)

// prompt returns the messages that ask the model for the program, and the roles of the known tools in them. It runs in
// a flight. Parts that cannot be read, such as known tools and history, are left out: a poorer prompt is better than no
// program.
func (c *writer) prompt(ctx context.Context, o Request,
	failures []agent.AttemptFailure) (messages []provider.Message, tools []string) {
	args, kwargs := c.WithoutInputHistory()
	in := prompt.Input{Owner: c.Reader(), Kind: o.Kind, Role: c.Role, Method: c.Method, Args: args, Kwargs: kwargs,
		Depth: c.Depth, Contract: c.Terms.Contract,
		KnownTools: knownTools(ctx, &c.Selection, o), Connections: connectionsFor(ctx, &c.Selection),
		Patterns: patternsFor(ctx, &c.Selection),
		Dialect:  c.Env.Dialect, FetchMax: c.Env.FetchMax, Fetches: c.Policy.FetchesPerCall,
		ModelContext: modelContext(c.Call), ContextKeys: contextShapes(c.Memory),
		HistoryInput: c.InputHistory != nil, HistoryTurns: c.HistoryMessages(), OneOff: c.Dispatch(),
		Wish: c.Mask(wishOf(&c.Selection)), Evidence: c.evidence(ctx, o), Examples: shownExamples(&c.Selection)}
	files := fileRefs(c.Call)
	in.Files, in.TakesFiles = shownFiles(ctx, c.Call, files), len(files) > 0
	previewHistory(ctx, &c.Selection, &in)
	if c.Dispatch() {
		in.Turns = spokenTurns(ctx, &c.Selection)
	}
	if g := o.Predecessor; g != nil && len(g.Fixtures) > 0 && c.Decision.Reason != selection.ReasonChecksum &&
		c.Policy.FixturesEnabled && !c.SwitchedOff() && !c.Rewrites() {
		in.Earlier = g.Code // the program will be held to recorded answers that the model cannot know
	}
	if o.mayKeep() {
		in.Recheck = &prompt.Recheck{Code: o.Predecessor.Code,
			Before: agent.Contract{Purpose: o.Predecessor.MadeFor.Purpose, Acceptance: o.Predecessor.MadeFor.Acceptance,
				FailurePolicy: o.Predecessor.MadeFor.FailurePolicy}}
	}
	if o.Kind == provider.KindRepair {
		in.FailedCode, in.FailureClass, in.FailureMessage = o.Basis.Code, o.Basis.Class, failureShown(c.Call, &o.Basis)
		in.FailureMetadata, in.Broke = c.MaskData(o.Basis.Attempt.Outcome.Metadata), o.Basis.Attempt.Broke
	}
	for _, f := range failures {
		text := f.Stage + ": " + f.ErrorType + ": " + f.ErrorMessage
		if f.Hint != "" {
			text += ": " + f.Hint
		}
		in.Feedback = append(in.Feedback, c.Mine(text))
	}
	messages, tools = prompt.ProgramAndTools(in)
	for i := range messages {
		messages[i].Content = c.Shown().Known.String(messages[i].Content)
	}
	return messages, tools
}

// modelContext returns how many tokens the call's model can read and write together, or 0 if that is unknown.
func modelContext(c *call.Call) int {
	if c.Env.ModelContext == nil {
		return 0
	}
	return c.Env.ModelContext(c.Model())
}

// contextShapes returns the shape of each value, so the prompt shows no content of the context.
func contextShapes(memory map[string]json.RawMessage) map[string]string {
	out := make(map[string]string, len(memory))
	for k, v := range memory {
		out[k] = prompt.Shape(v)
	}
	return out
}

// Reasons of a requested regeneration that no person wrote.
const (
	RegenerateRequested = "requested"       // an operator gave no reason
	ReforgePrefix       = "recommendation " // followed by the ID of the recommendation that was applied
)

// wishOf returns the reason that an operator gave for requesting a new program, or "". Reasons that the daemon filled
// in are left out, because they mean nothing to a model.
func wishOf(c *call.Selection) string {
	if c.Decision.Reason != selection.ReasonRequested || c.Artifact == nil {
		return ""
	}
	reason := c.Artifact.ForceRegenerate
	if reason == RegenerateRequested || strings.HasPrefix(reason, ReforgePrefix) {
		return ""
	}
	return reason
}

// previewHistory gives the model the number of records and a summary of the latest ones, without their values.
func previewHistory(ctx context.Context, c *call.Selection, in *prompt.Input) {
	page, err := c.Env.Store.History(ctx, c.Session.ID, attempt.WholeHistory(false))
	if err != nil {
		in.HistoryCount = -1
		return
	}
	in.HistoryCount = len(page.Records)
	for i := min(len(page.Records), c.Policy.HistoryPreviewLimit) - 1; i >= 0; i-- {
		var rec agent.Record
		if json.Unmarshal(page.Records[i], &rec) != nil {
			continue
		}
		in.HistoryLatest = append(in.HistoryLatest, prompt.HistoryRecord{CallID: rec.CallID, Speaker: rec.Speaker,
			MethodName:    rec.MethodName,
			OutcomeStatus: rec.OutcomeSummary.Status, ErrorType: rec.ErrorType,
			Signature: knownSignature(ctx, c, rec.Role, rec.MethodName)})
	}
}

// maxSpokenTurns bounds the earlier calls that are shown for a method of free text.
const maxSpokenTurns = 10

// spokenTurns returns the session's latest calls with their arguments and values, secrets masked, because free text
// often refers to earlier turns. It returns none if the policy shows no history.
func spokenTurns(ctx context.Context, c *call.Selection) []prompt.Turn {
	if c.Policy.HistoryPreviewLimit == 0 {
		return nil
	}
	page, err := c.Env.Store.History(ctx, c.Session.ID, store.HistoryQuery{Limit: maxSpokenTurns,
		Bytes: attempt.MaxHistoryBytes,
		Scan:  attempt.MaxHistoryLook, Desc: true, Depth0: true})
	if err != nil {
		return nil
	}
	var out []prompt.Turn
	for _, raw := range slices.Backward(page.Records) {
		var rec agent.Record
		if json.Unmarshal(raw, &rec) != nil {
			continue
		}
		args, kwargs := c.ShownArgs(rec.Args, rec.Kwargs)
		t := prompt.Turn{Method: rec.MethodName, Args: jsonenc.Array(args), Kwargs: kwargs}
		if !rec.OutcomeSummary.OK {
			t.Failure = c.Mask(rec.ErrorType + ": " + rec.ErrorMessage)
		} else if was, err := c.Env.Store.Call(ctx, rec.CallID); err == nil && was.Outcome != nil {
			t.Value, _ = c.Rules.JSON(was.Outcome.Value)
		}
		out = append(out, t)
	}
	return out
}

// connectionsFor returns the connections that programs of the role may use.
func connectionsFor(ctx context.Context, c *call.Selection) []prompt.Connection {
	all, err := c.Env.Store.ListConnections(ctx)
	if err != nil {
		return nil
	}
	var out []prompt.Connection
	for _, x := range all {
		if x.Grants(c.Role) {
			out = append(out, prompt.Connection{Name: x.Name, Description: x.Description, Addresses: addressesOf(c, &x),
				Methods: x.Methods, Whole: x.Auth.Type == agent.AuthURL})
		}
	}
	return out
}

// addressesOf returns how programs begin URLs of the connection's hosts. For a connection that is a whole URL, it
// returns the connection's name.
func addressesOf(c *call.Selection, x *agent.Connection) []string {
	if x.Auth.Type == agent.AuthURL {
		return []string{agent.ConnectionScheme + ":" + x.Name}
	}
	if c.Env.Scheme == nil {
		return x.Hosts
	}
	out := make([]string, len(x.Hosts))
	for i, h := range x.Hosts {
		out[i] = c.Env.Scheme(h) + h
	}
	return out
}

// promptTexts returns the system message and the last user message, for the log.
func promptTexts(messages []provider.Message) (system, user string) {
	for _, m := range messages {
		switch m.Role {
		case "system":
			system = m.Content
		case "user":
			user = m.Content
		}
	}
	return system, user
}

// patternsFor describes, for the model of a root call, the capabilities that programs of this role needed repeatedly.
func patternsFor(ctx context.Context, c *call.Selection) []string {
	if c.Depth > 0 {
		return nil
	}
	events, err := c.Env.Store.Patterns(ctx, c.Role)
	if err != nil {
		return nil
	}
	return evolve.PatternsForPrompt(evolve.Capable(events))
}

// maxShownExamples bounds the examples in a request. The others are held back, and are shown one at a time when a
// program breaks them.
const maxShownExamples = 3

// shownExamples returns the examples that the model sees, secrets masked.
func shownExamples(c *call.Selection) []prompt.Example {
	var out []prompt.Example
	for _, x := range c.Artifact.ActiveExamples() {
		if len(out) == maxShownExamples {
			break
		}
		if proof.Outdated(c, &x, false) {
			continue // the source that it rests on has changed
		}
		args, kwargs := c.ShownArgs(x.Args, x.Kwargs)
		expect, _ := c.Rules.JSON(agent.Encoded(x.Expect))
		memory, _ := c.Rules.JSON(x.Context)
		out = append(out, prompt.Example{Args: jsonenc.Array(args), Kwargs: kwargs, Context: memory, Expect: expect,
			Note: c.Mask(x.Note)})
	}
	return out
}
