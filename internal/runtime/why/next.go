package why

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
)

// maxAgain bounds the body of a request that repeats the call, in bytes.
const maxAgain = 4 << 10

// steps collects the requests of Next.
type steps struct {
	list []Step
	call string // path of the call
	id   string
}

// add appends a request. An empty body or command means none.
func (s *steps) add(name, method, path, body, command string) {
	step := Step{Name: name, Method: method, Path: path, Command: command}
	if body != "" {
		step.Body = json.RawMessage(body)
	}
	s.list = append(s.list, step)
}

// next returns the requests that are useful after the call. They work for the asker as long as nothing changes.
func next(in *Input) []Step {
	e := &in.Call.Log
	s := &steps{list: []Step{}, call: "/v1/calls/" + url.PathEscape(e.CallID), id: Argument(e.CallID)}
	switch {
	case running(e):
		s.add("follow its stages", "GET", s.call+"/events", "", "recurgentd watch --session "+Argument(e.SessionID))
		if in.Asker.Call {
			s.add("cancel it", "POST", s.call+"/cancel", "{}", "")
		}
	case in.Asker.Call:
		s.judge(in)
		s.again(in)
		s.method(in)
	default:
		s.method(in)
	}
	// only caps of tokens have resets_at
	if o := in.Call.Outcome; o != nil && o.ErrorType == agent.ErrBudgetExceeded && o.Metadata["resets_at"] != nil {
		s.add("see what was spent, and the caps", "GET", "/v1/usage", "", "recurgentd usage")
	}
	if e.ParentCallID != "" {
		s.add("see why the call that made this one ended as it did", "GET",
			"/v1/calls/"+url.PathEscape(e.ParentCallID)+"/why", "", "recurgentd why "+Argument(e.ParentCallID))
	}
	if e.CorrectedBy != "" {
		s.add("see why the question was asked again", "GET", "/v1/calls/"+url.PathEscape(e.CorrectedBy)+"/why", "",
			"recurgentd why "+Argument(e.CorrectedBy))
	}
	return s.list
}

// judge offers verdicts, if the call can be judged.
func (s *steps) judge(in *Input) {
	e := &in.Call.Log
	answered := e.ProgramSource != agent.SourceNone && e.ProgramSource != ""
	unkept := in.Artifact == nil // such as after a first call that ended in its program's own error
	// an outage is not an example: a later program would have to fail as well
	right := e.MayBeRight() && !outage(e)
	if !answered || e.ReplayableReason == agent.ReasonMasked || in.Call.Outcome == nil || e.Args == nil || unkept &&
		!right {
		return
	}
	verdict, operate, said := s.call+"/verdict", in.Asker.Operate, in.Artifact.Verdict(e.CallID)
	if said != nil && (operate || said.State != agent.ExampleActive) {
		s.add("withdraw the verdict", "DELETE", verdict, "", "recurgentd verdict "+s.id+" --drop")
	}
	// news reports whether the verdict would change something
	news := func(v string) bool { return e.Verdict != v && (operate || said == nil || said.Verdict != v) }
	if right && news(agent.VerdictRight) {
		name := "propose that it is right: the answer becomes an example when somebody who may operate accepts it"
		if operate {
			name = "judge it right, which makes the answer an example"
		}
		s.add(name, "POST", verdict, `{"verdict":"right"}`, "recurgentd right "+s.id)
	}
	if news(agent.VerdictWrong) && !unkept { // without a program, a wrong verdict needs an expectation
		name := "say that it is wrong: nothing changes until somebody who may operate decides"
		if operate {
			name = "judge it wrong, so that the program is corrected as the policy says"
		}
		s.add(name, "POST", verdict, `{"verdict":"wrong"}`, "recurgentd wrong "+s.id)
	}
}

// again offers to replay the call on its recorded effects or, after a failure that may pass, to repeat it.
func (s *steps) again(in *Input) {
	e := &in.Call.Log
	if e.Replayable && in.Call.Outcome != nil {
		s.add("run it again on what was recorded", "POST", s.call+"/replay", "{}", "recurgentd replay "+s.id)
	}
	masked := e.ReplayableReason == agent.ReasonMasked
	// offer a repetition only if the request can be rebuilt exactly from the log
	if !e.OutcomeRetriable || masked || e.Depth > 0 || e.Args == nil || e.SessionID == "" ||
		e.ContractSource != "none" || e.Selection.Decision == agent.DecideNone {
		return
	}
	body, err := json.Marshal(struct {
		Role   string            `json:"role"`
		Method string            `json:"method"`
		Args   []json.RawMessage `json:"args"`
		Kwargs json.RawMessage   `json:"kwargs,omitempty"`
	}{e.Role, e.Method, e.Args, e.Kwargs})
	if err == nil && len(body) <= maxAgain {
		s.add("ask again, since the failure may pass", "POST", "/v1/sessions/"+url.PathEscape(e.SessionID)+"/calls",
			string(body), againCommand(e))
	}
}

// againCommand returns the command that repeats the call.
func againCommand(e *agent.LogEntry) string {
	command := "recurgentd call --session " + Argument(e.SessionID)
	if len(e.Kwargs) > len("{}") {
		command += " --kwargs " + Argument(string(e.Kwargs))
	}
	command += Names(e.Role, e.Method)
	for _, a := range e.Args {
		command += " " + Argument(string(a))
	}
	return command
}

// method offers requests about the method.
func (s *steps) method(in *Input) {
	e, a := &in.Call.Log, in.Artifact
	if a == nil || a.Current() == nil {
		return
	}
	path, names := attempt.ToolPath(e.Role, e.Method), Names(e.Role, e.Method)
	s.add("see the examples of the method", "GET", path+"/examples", "", "recurgentd tools examples list"+names)
	if e.OutcomeErrorType == agent.ErrDenied || e.BeyondManifest != nil {
		s.add("see what the method may reach", "GET", path+"/effects", "", "recurgentd tools effects"+names)
	}
	if !in.Asker.Operate {
		return
	}
	switch {
	case a.Quarantined:
		s.add("release the method from quarantine", "POST", path+"/release", "{}", "recurgentd tools release"+names)
	case in.PolicyNow.ApprovalRequired && !a.Current().Approved, in.PolicyNow.NewReach == agent.ReachAsk &&
		a.AwaitsReach(a.Current()), a.AwaitsExamples(a.Current()):
		s.add("approve the current program", "POST", path+"/approve", "{}", "recurgentd tools approve"+names)
	}
	s.add("write a new program at the next call", "POST", path+"/regenerate", "{}", "recurgentd tools regenerate"+names)
}

// Names returns role and method as arguments of a shell command, each after a space.
func Names(role, method string) string {
	names := " " + Argument(role) + " " + Argument(method)
	if strings.HasPrefix(role, "-") || strings.HasPrefix(method, "-") {
		return " --" + names // otherwise the command would take them for flags
	}
	return names
}
