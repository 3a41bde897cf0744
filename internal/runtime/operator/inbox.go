package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/overview"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/internal/store"
)

// inboxRecommendation is the kind of an open recommendation. Package overview has the other kinds.
const inboxRecommendation = "recommendation"

// InboxKinds returns all kinds.
func InboxKinds() []string {
	return []string{overview.Approval, overview.Correction, overview.Proposal, inboxRecommendation, overview.Effects}
}

// An InboxQuery selects a page of what awaits a person's decision.
type InboxQuery struct {
	Kind, Role, Method string // "" for all
	After              string // cursor of the previous page; "" for the first page
	Limit              int
	// Sees reports whether the reader may see the call; nil means all calls, and all data from calls in artifacts.
	Sees  func(ctx context.Context, callID string) bool
	Owner string // the reader, if Sees is not nil
}

// sees reports whether the reader may see the call.
func (q *InboxQuery) sees(ctx context.Context, callID string) bool {
	return q.Sees == nil || q.Sees(ctx, callID)
}

// Waiting is an entry of the inbox: something that awaits a person's decision.
type Waiting struct {
	ID         string           `json:"id"` // stays the same until it is decided
	Kind       string           `json:"kind"`
	Role       string           `json:"role"`
	Method     string           `json:"method"` // "" if it concerns the whole role
	Since      string           `json:"since"`
	Summary    string           `json:"summary"`
	Evidence   any              `json:"evidence"`
	Operations []InboxOperation `json:"operations"` // those that decide it, starting with the one that agrees
}

// InboxOperation is a request that decides an entry, ready to send.
type InboxOperation struct {
	Name    string          `json:"name"` // what it does, for people
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Body    json.RawMessage `json:"body"`              // null if there is none
	Scopes  []string        `json:"scopes"`            // needs all of them
	Scope   string          `json:"scope"`             // the last of Scopes
	Command string          `json:"command,omitempty"` // shell command that sends it
}

// Inbox returns a page of what awaits a person's decision, newest first, and the cursor of the next page, or "". An
// invalid cursor is overview.ErrCursor.
func (o *Operator) Inbox(ctx context.Context, q InboxQuery) (page []Waiting, next string, err error) {
	after, err := inboxPlace(q.After)
	if err != nil {
		return nil, "", err
	}
	policy := o.calls.Policy()
	all := []overview.Wait{}
	if q.Kind != inboxRecommendation {
		if all, err = o.overview.Waits(ctx, &policy); err != nil {
			return nil, "", err
		}
	}
	advice := map[string]Advice{}
	if q.Kind == "" || q.Kind == inboxRecommendation {
		open, err := o.openAdvice(ctx, true)
		if err != nil {
			return nil, "", err
		}
		for _, a := range open {
			w := overview.Wait{ID: overview.NewID(inboxRecommendation, a.Role, a.Method, a.ID),
				Kind: inboxRecommendation, Role: a.Role, Method: a.Method, Of: a.ID}
			if len(a.Evidence) > 0 {
				w.Since = ids.Time(a.Evidence[0]).UTC()
			}
			advice[a.ID] = a
			all = append(all, w)
		}
	}
	all = slices.DeleteFunc(all, func(w overview.Wait) bool {
		return q.Kind != "" && w.Kind != q.Kind || q.Role != "" && w.Role != q.Role || q.Method != "" &&
			w.Method != q.Method || after != nil && w.Compare(after) <= 0
	})
	slices.SortFunc(all, func(a, b overview.Wait) int { return a.Compare(&b) })
	page = []Waiting{}
	for i := range all {
		w := &all[i]
		// another entry exists, so there is a next page
		if len(page) == q.Limit {
			last := &all[i-1]
			return page, agent.FormatTime(last.Since) + "," + last.ID, nil
		}
		one, err := o.waiting(ctx, w, &q, advice)
		if err != nil {
			return nil, "", err
		}
		if one != nil {
			page = append(page, *one)
		}
	}
	return page, "", nil
}

// inboxPlace returns the last entry of the previous page, or nil for the first page.
func inboxPlace(cursor string) (*overview.Wait, error) {
	if cursor == "" {
		return nil, nil // the start is not a place
	}
	since, id, ok := strings.Cut(cursor, ",")
	at, err := time.Parse(time.RFC3339, since)
	if !ok || err != nil || !strings.HasPrefix(id, "wait_") {
		return nil, overview.ErrCursor
	}
	return &overview.Wait{Since: at, ID: id}, nil
}

// InboxWaiting is the type of the events of InboxCounts. Their data is {"waiting": 3}.
const InboxWaiting = "inbox.waiting"

// Intervals of InboxCounts. The last one catches decisions about recommendations by other replicas, which the change
// feed does not announce.
const (
	recountRest  = time.Second      // least pause after a count
	recountShare = 20               // least pause in multiples of the count's duration
	recountAtAll = 15 * time.Second // longest pause
)

// InboxCounts passes the number of inbox entries to emit, at once and after each change, until emit fails or ctx ends.
// It counts after changes that may affect the inbox.
func (o *Operator) InboxCounts(ctx context.Context, emit func(progress.Event) error) error {
	ctx, end := o.whileItLives(ctx)
	defer end()
	for last := -1; ; {
		changed, decided, began := o.overview.Changed(), o.advised.Wait(), time.Now()
		n, err := o.inboxCount(ctx)
		if err != nil {
			return err
		}
		if n != last {
			last = n
			if err := emit(progress.Event{Type: InboxWaiting,
				Data: json.RawMessage(`{"waiting":` + strconv.Itoa(n) + `}`)}); err != nil {
				return err
			}
		}
		if err := pause(ctx, max(recountRest, recountShare*time.Since(began)), nil, nil); err != nil {
			return err
		}
		if err := pause(ctx, recountAtAll, changed, decided); err != nil {
			return err
		}
	}
}

// inboxCount returns the number of inbox entries under the stored policy. A change by another replica takes effect here
// only a moment later.
func (o *Operator) inboxCount(ctx context.Context) (int, error) {
	policy, _, err := o.store.Policy(ctx)
	if err != nil {
		return 0, err
	}
	waits, err := o.overview.Waits(ctx, &policy)
	if err != nil {
		return 0, err
	}
	advice, err := o.OpenRecommendations(ctx)
	return len(waits) + advice, err
}

// pause waits for that time, or until one of the channels has a value. It returns the cause of ctx's end if that comes
// first.
func pause(ctx context.Context, most time.Duration, a, b <-chan struct{}) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-a:
	case <-b:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// ProgramEvidence is the basis of a decision about a program or its effects.
type ProgramEvidence struct {
	Generation     string    `json:"generation"`
	LifecycleState string    `json:"lifecycle_state"`
	Summary        string    `json:"summary"`   // of its interface; may be empty
	Signature      string    `json:"signature"` // as in a call
	Parent         *string   `json:"parent"`    // null if none is kept
	Trigger        string    `json:"trigger"`
	CreatedAt      time.Time `json:"created_at"`
	// generation that answers a call without a contract; null if there is none
	AnswersNow     *string `json:"answers_now"`
	ChangedAnswers int     `json:"changed_answers"` // earlier answers of its parent that differ
	Examples       int     `json:"examples"`        // active examples of the method
	// examples that it fails, if it was made for a changed purpose
	Breaks int `json:"breaks"`
	// ids of these, as far as the reader may see their calls
	BrokenExamples []string        `json:"broken_examples"`
	SuccessCount   int64           `json:"success_count"`
	FailureCount   int64           `json:"failure_count"`
	Did            *agent.Effects  `json:"did"` // in successful calls; null before the first one
	NamedHosts     []string        `json:"named_hosts"`
	NewHosts       []string        `json:"new_hosts"` // hosts that its parent neither reaches nor names
	Beyond         agent.Effects   `json:"beyond"`    // effects that no person has approved
	Manifest       *agent.Manifest `json:"manifest"`  // null if there is none
}

// CorrectionEvidence is the state of a correction.
type CorrectionEvidence struct {
	Generation string           `json:"generation"` // that answers
	Correction agent.Correction `json:"correction"`
	// verdicts that no program satisfies, newest first, as far as the reader may see their calls
	Wrong      []agent.Verdict `json:"wrong"`
	WrongCount int             `json:"wrong_count"`
}

// ProposalEvidence is a proposed example, a proposed verdict without expectation, or a proposed contract. One field is
// set.
type ProposalEvidence struct {
	Example  *agent.Example    `json:"example"`
	Verdict  *agent.Verdict    `json:"verdict"`
	Contract *ContractEvidence `json:"contract"`
}

// waiting returns the inbox entry. It returns nil if it is decided meanwhile, or not visible to the reader.
func (o *Operator) waiting(ctx context.Context, w *overview.Wait, q *InboxQuery,
	advice map[string]Advice) (*Waiting, error) {
	out := &Waiting{ID: w.ID, Kind: w.Kind, Role: w.Role, Method: w.Method, Since: agent.FormatTime(w.Since)}
	if w.Kind == inboxRecommendation {
		return o.recommended(ctx, out, q, advice[w.Of]), nil
	}
	if w.Method == "" {
		return o.contractProposed(ctx, out, w, q)
	}
	a, err := o.store.Artifact(ctx, w.Role, w.Method)
	if errors.Is(err, store.ErrNotFound) || err == nil && !w.StandsIn(a) {
		return nil, nil // it is gone, or decided
	}
	if err != nil {
		return nil, err
	}
	switch w.Kind {
	case overview.Proposal:
		return o.proposed(ctx, out, w, q, a), nil
	case overview.Correction:
		return o.corrected(ctx, out, w, q, a), nil
	}
	g := a.Current()
	if back, _ := a.BreaksReturned(); back != nil && w.Kind == overview.Approval && w.Of == back.ID {
		return o.returned(ctx, out, q, a), nil
	}
	evidence := o.programEvidence(ctx, a, g)
	evidence.addBroken(ctx, q, a, a.Breaks(g))
	out.Evidence = evidence
	path, names := attempt.ToolPath(w.Role, w.Method), why.Names(w.Role, w.Method)
	approve := func() {
		out.offer("approve the program", "POST", path+"/approve", bodyOf("generation", g.ID),
			"recurgentd tools approve --generation "+why.Argument(g.ID)+names)
	}
	switch allowed := allowedBy(a, g, &evidence.Beyond); {
	case w.Kind == overview.Approval:
		out.Summary = g.ID + " waits for approval: it " + madeFor(g.Trigger)
		if evidence.Breaks > 0 {
			out.Summary = fmt.Sprintf(
				"%s waits for approval: it was written for the changed purpose of the method, and does not hold %d of its examples", g.ID, evidence.Breaks)
		}
		out.offer("approve the program", "POST", path+"/approve", bodyOf("generation", g.ID),
			"recurgentd tools approve"+names)
	case a.AwaitsReach(g):
		out.Summary = g.ID + " waits for approval: it would reach what its predecessors did not"
		// approving the program alone would not let it run, so the manifest comes first
		if o.keptToManifest(a) && !computes(&evidence.Beyond) {
			out.offer("approve the effects", "PUT", path+"/effects", allowed, "")
			approve()
		} else {
			approve()
			out.offer("approve the effects", "PUT", path+"/effects", allowed, "")
		}
	default:
		out.Summary = g.ID + " has effects that nobody has approved"
		out.offer("approve the effects", "PUT", path+"/effects", allowed, "")
	}
	out.offerAgainst(evidence.Parent, w.Kind == overview.Effects && a.AwaitsReach(g) || evidence.Breaks > 0 &&
		!g.Approved)
	return out, nil
}

// madeFor describes why a program was made, by its trigger.
func madeFor(trigger string) string {
	kind, reason, _ := strings.Cut(trigger, ":")
	said := ""
	if reason != "" && reason != "put" {
		said = " (" + strconv.Quote(agent.Clip(strings.ReplaceAll(reason, "_", " "), 200)) + ")"
	}
	switch kind {
	case "initial_forge":
		return "is the first program of its method"
	case "repair":
		return "is a repair of the program before it" + said
	case "regenerate":
		return "was written anew" + said
	case "operator":
		return "was put in by a person" + said
	}
	return "was made by " + strconv.Quote(agent.Clip(trigger, 200))
}

// offerAgainst offers to take a program out of use: a rollback to its parent, if it has one, and quarantine.
func (out *Waiting) offerAgainst(parent *string, waits bool) {
	path, names := attempt.ToolPath(out.Role, out.Method), why.Names(out.Role, out.Method)
	if parent != nil {
		name := "roll back to " + *parent
		if waits {
			name = "reject the program, and stay with " + *parent
		}
		out.offer(name, "POST", path+"/rollback", bodyOf("generation", *parent),
			"recurgentd tools rollback --generation "+why.Argument(*parent)+names)
	}
	out.offer("quarantine the method", "POST", path+"/quarantine", "{}", "recurgentd tools quarantine"+names)
}

// returned fills in a program that answers again because of a person's change, although it fails examples.
func (o *Operator) returned(ctx context.Context, out *Waiting, q *InboxQuery, a *agent.Artifact) *Waiting {
	g, ids := a.BreaksReturned()
	evidence := o.programEvidence(ctx, a, g)
	evidence.addBroken(ctx, q, a, ids)
	out.Evidence = evidence
	out.Summary = fmt.Sprintf("%s answers again since a person's change, and does not hold %d of the method's examples",
		g.ID, len(ids))
	path, names := attempt.ToolPath(a.Role, a.MethodName), why.Names(a.Role, a.MethodName)
	out.offer("approve the program", "POST", path+"/approve", bodyOf("generation", g.ID),
		"recurgentd tools approve --generation "+why.Argument(g.ID)+names)
	if g.ID != a.CurrentID {
		out.offer("have "+a.CurrentID+" answer", "POST", path+"/rollback", bodyOf("generation", a.CurrentID),
			"recurgentd tools rollback --generation "+why.Argument(a.CurrentID)+names)
	}
	out.offer("write a new program at the next call", "POST", path+"/regenerate", "{}",
		"recurgentd tools regenerate"+names)
	return out
}

// addBroken counts the examples that a program fails, and lists those that the reader may see.
func (e *ProgramEvidence) addBroken(ctx context.Context, q *InboxQuery, a *agent.Artifact, ids []string) {
	for _, id := range ids {
		if e.Breaks++; a.Example(id).CallID == "" || q.sees(ctx, a.Example(id).CallID) {
			e.BrokenExamples = append(e.BrokenExamples, id)
		}
	}
}

// recommended fills in a recommendation.
func (o *Operator) recommended(ctx context.Context, out *Waiting, q *InboxQuery, a Advice) *Waiting {
	if q.Sees != nil {
		a = o.shared(ctx, a, q.Sees)
	}
	out.Summary, out.Evidence = a.Reason, a
	id := "/v1/recommendations/" + a.ID
	out.offer("apply the recommendation", "POST", id+"/apply", "{}", "recurgentd recommend --apply "+why.Argument(a.ID))
	out.offer("dismiss the recommendation", "POST", id+"/dismiss", "{}",
		"recurgentd recommend --dismiss "+why.Argument(a.ID))
	return out
}

// allowedBy returns the method's manifest extended by beyond, as the body of a request.
func allowedBy(a *agent.Artifact, g *agent.Generation, beyond *agent.Effects) string {
	allowed := *beyond
	if m := a.Manifest; m != nil {
		missing := m.Missing(allowed)
		allowed = m.With(&missing)
	} else if g.Effects != nil {
		allowed = g.Effects.With(&allowed)
	}
	return string(agent.Encoded(allowed.With(&agent.Effects{})))
}

// keptToManifest reports whether an approved program still needs the manifest to list its effects.
func (o *Operator) keptToManifest(a *agent.Artifact) bool {
	return o.calls.Policy().Effects == agent.EffectsEnforce || a.Manifest != nil && a.Manifest.ApprovedBy != ""
}

// computes reports whether the effects contain "*": the program computes the value, so it may be anything.
func computes(e *agent.Effects) bool {
	return slices.ContainsFunc([][]string{e.Hosts, e.Methods, e.Tools},
		func(l []string) bool { return slices.Contains(l, "*") })
}

// offer adds a request that needs the scope operate.
func (w *Waiting) offer(name, method, path, body, command string) {
	op := InboxOperation{Name: name, Method: method, Path: path, Scopes: []string{"operate"}, Scope: "operate",
		Command: command}
	if body != "" {
		op.Body = json.RawMessage(body)
	}
	w.Operations = append(w.Operations, op)
}

// needs sets the scopes of the last request.
func (w *Waiting) needs(scopes ...string) {
	op := &w.Operations[len(w.Operations)-1]
	op.Scopes, op.Scope = scopes, scopes[len(scopes)-1]
}

// offerVerdictBack adds the request that withdraws the verdict on a call.
func (w *Waiting) offerVerdictBack(name, callID string, scopes ...string) {
	w.offer(name, "DELETE", "/v1/calls/"+callID+"/verdict", "", "recurgentd verdict "+why.Argument(callID)+" --drop")
	w.needs(scopes...)
}

// inputOf returns the arguments of the judged call, shortened for a label.
func inputOf(v *agent.Verdict) string {
	args := string(agent.Encoded(append([]json.RawMessage{}, v.Args...)))
	return "(" + agent.Clip(args[1:len(args)-1], 40) + ")"
}

// bodyOf returns a JSON object with one member.
func bodyOf(name, value string) string { return string(agent.Encoded(map[string]string{name: value})) }

// programEvidence returns the evidence about a program, except for examples that it fails.
func (o *Operator) programEvidence(ctx context.Context, a *agent.Artifact, g *agent.Generation) ProgramEvidence {
	e := ProgramEvidence{Generation: g.ID, LifecycleState: a.StateOf(g), Signature: g.Interface.Signature(a.MethodName),
		Trigger: g.Trigger, CreatedAt: g.CreatedAt.UTC(), ChangedAnswers: len(g.ChangedAnswers),
		Examples:     len(a.ActiveExamples()),
		SuccessCount: g.SuccessCount, FailureCount: g.IntrinsicFailureCount + g.AdaptiveFailureCount +
			g.ExtrinsicFailureCount, Did: g.Effects,
		NamedHosts: append([]string{}, g.NamedHosts()...), NewHosts: append([]string{}, a.NewHosts(g)...),
		Manifest: a.Manifest, BrokenExamples: []string{}}
	if g.Interface != nil {
		e.Summary = g.Interface.Summary
	}
	beyond := overview.Beyond(a, g)
	e.Beyond = beyond.With(&agent.Effects{})
	if g.ParentID != nil && a.Find(*g.ParentID) != nil {
		e.Parent = g.ParentID
	}
	t, _ := o.store.Tool(ctx, a.Role) // a zero tool has no contract
	if d := o.calls.Next(resolved(o.contracts, &t, a.MethodName), a); d.Decision == agent.DecideRun {
		e.AnswersNow = &d.Generation.ID
	}
	return e
}

// corrected fills in a correction.
func (o *Operator) corrected(ctx context.Context, out *Waiting, w *overview.Wait, q *InboxQuery,
	a *agent.Artifact) *Waiting {
	wrongs := a.Corrections()
	e := CorrectionEvidence{Generation: w.Of, Correction: agent.Correction{State: agent.CorrectionNone},
		Wrong: []agent.Verdict{}, WrongCount: len(wrongs)}
	if a.Correction != nil {
		e.Correction = *a.Correction
		if q.Sees != nil {
			e.Correction.LastError = nil
		}
	}
	path, names := attempt.ToolPath(w.Role, w.Method), why.Names(w.Role, w.Method)
	out.Summary = "an answer of " + w.Of + " was judged wrong, and the model is not correcting the program"
	if e.Correction.State == agent.CorrectionFailed {
		out.Summary = "an answer of " + w.Of + " was judged wrong, and the model could not correct the program"
	}
	out.offer("write a new program at the next call", "POST", path+"/regenerate", "{}",
		"recurgentd tools regenerate"+names)
	for _, v := range wrongs {
		if q.sees(ctx, v.CallID) {
			e.Wrong = append(e.Wrong, v)
			name := "withdraw the verdict"
			if len(wrongs) > 1 {
				name += " on " + w.Method + inputOf(&v)
			}
			out.offerVerdictBack(name, v.CallID, "call", "operate")
		}
	}
	out.offer("quarantine the method", "POST", path+"/quarantine", "{}", "recurgentd tools quarantine"+names)
	out.Evidence = e
	return out
}

// proposed fills in a proposed example or verdict. It returns nil if it is decided meanwhile, or not visible to the
// reader.
func (o *Operator) proposed(ctx context.Context, out *Waiting, w *overview.Wait, q *InboxQuery,
	a *agent.Artifact) *Waiting {
	path, names := attempt.ToolPath(w.Role, w.Method), why.Names(w.Role, w.Method)
	may := []string{"call", "operate"}
	if q.Sees != nil { // the reader's own proposal
		may = may[:1]
	}
	if x := a.Example(w.Of); x != nil && x.State == agent.ExampleProposed && q.sees(ctx, x.CallID) {
		shown := *x
		shown.Effects, shown.TakenAt = nil, time.Time{} // needed only by runs
		out.Summary, out.Evidence = "an example was proposed", ProposalEvidence{Example: &shown}
		id := path + "/examples/" + url.PathEscape(x.ID)
		out.offer("accept the example", "POST", id+"/accept", "{}",
			"recurgentd tools examples accept"+names+" "+why.Argument(x.ID))
		out.offer("reject the example", "POST", id+"/reject", "{}",
			"recurgentd tools examples reject"+names+" "+why.Argument(x.ID))
		if v := a.Verdict(x.CallID); q.Sees != nil && v != nil && v.ExampleID == x.ID {
			out.offerVerdictBack("withdraw the proposal", x.CallID, may...)
		}
		return out
	}
	v := a.Verdict(w.Of)
	if v == nil || v.State != agent.ExampleProposed || !q.sees(ctx, v.CallID) {
		return nil
	}
	out.Summary, out.Evidence = "somebody proposed the verdict "+v.Verdict+" on a call", ProposalEvidence{Verdict: v}
	out.offer("confirm the verdict", "POST", "/v1/calls/"+v.CallID+"/verdict", bodyOf("verdict", v.Verdict),
		"recurgentd "+v.Verdict+" "+why.Argument(v.CallID))
	out.needs("call", "operate")
	out.offerVerdictBack("withdraw the proposal", v.CallID, may...)
	return out
}
