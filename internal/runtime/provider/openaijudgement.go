package provider

import (
	"net/http"
	"regexp"
	"slices"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// An outcome states whether the same request may be sent again.
type outcome int

const (
	final     outcome = iota // no repetition helps
	transient                // may succeed after a pause
	loading                  // the server is loading its model: repeat while the budget lasts
)

// A step is the aspect that a refusal shows to be wrong, in the order of a check.
type step int

const (
	stepNone step = iota
	stepReached
	stepKey
	stepModel
	stepLimit
	stepContext
)

// A judgement gives the meaning of refusals that have one of the statuses and match the words.
type judgement struct {
	statuses []int                 // nil means any
	words    func() *regexp.Regexp // matched in lower case; nil means any
	outcome  outcome
	free     bool // no model worked on it, even if the status is 500 or higher
	reason   string
	step     step
	says     string // what happened
	advice   string // what the operator can do
}

const (
	addCredit    = "add credit there, or set another key in OPENAI_API_KEY"
	unknownModel = "the model's server does not know the model, or does not serve it"
	nameModel    = "--model must name one that it has, in its own words; %q was asked for (Ollama: ollama pull NAME)"
)

// judgements are tried in order. Words come before entries that depend on the status alone.
var judgements = []judgement{
	{nil, lazy.Regexp(`requires more system memory|out of memory|insufficient (memory|system resources)`), final, true,
		ReasonServerError, stepNone,
		"the model does not fit into the memory of its server",
		"name a smaller model in --model, or give the server a smaller context"},
	{nil, lazy.Regexp(`(error|failed|failure|unable|cannot|could not)( to)? load(ing)?( the)? model|model (has )?crashed`), final, true, ReasonServerError, stepNone,
		"the model's server cannot load or run the model", "its log says why"},
	{[]int{404, 409, 425, 429, 500, 502, 503, 504},
		lazy.Regexp(`loading (the )?model|model is (still |currently |being )?load|(currently|still) loading|is being loaded|warming up|model (is )?not (yet )?ready|model_not_ready|starting up|cold start`), loading, true, ReasonServerError, stepNone,
		"the model's server is still loading the model", "try again when it is ready"},
	{nil, lazy.Regexp(`insufficient[_ ](quota|balance|credit|fund)|(credit )?balance is (too low|insufficient)|balance too low|not enough (credit|balance|fund)|out of credit|no credits?\b|more credits|payment required|is suspended|account_suspended|deactivated|exceeded_current_quota|billing_not_active|billing hard limit|arrearage|overdue|budget has been exceeded|exceededbudget|spend(ing)? limit|limit: 0\b|quota_limit_value": ?"?0|doesn.t have a free|余额|欠费|额度不足`), final, true, ReasonRateLimited, stepKey,
		"the account at the model's server has no credit or quota left", addCredit},
	{[]int{402}, nil, final, true, ReasonRejected, stepKey, "the model's server wants payment", addCredit},
	{nil, lazy.Regexp(`usage (limit|quota)|daily (request )?limit|free allocation|models-per-day|requires a subscription|set inference limit|使用上限`), final, true, ReasonRateLimited, stepKey,
		"the account at the model's server has used up what its plan grants",
		"wait until that is granted again, raise the plan, or set another key in OPENAI_API_KEY"},
	{[]int{413, 429}, lazy.Regexp(`request too large|tokens must be reduced`), final, true, ReasonRateLimited, stepNone,
		"the request is too large for the rate that the model's server grants",
		"lower --max-completion-tokens, which counts with the prompt, or raise the rate there"},
	{[]int{400, 401, 403}, lazy.Regexp(
		`api[_ ]?key|authentication|unauthorized|unauthenticated|no auth|bearer|access token|credentials|subscription key`), final, true, ReasonRejected, stepKey,
		"the model's server refused the key", "set OPENAI_API_KEY or --openai-api-key-file"},
	{nil, lazy.Regexp(`authenticationerror|(incorrect|invalid)[_ ]api[_ ]key|api key not valid`), final, true,
		ReasonRejected, stepKey,
		"the model's server refused the key", "set OPENAI_API_KEY or --openai-api-key-file"},
	{[]int{401}, nil, final, true, ReasonRejected, stepKey, "the model's server refused the key",
		"set OPENAI_API_KEY or --openai-api-key-file"},
	{nil, lazy.Regexp(`model_not_found|model_not_supported|modelnotopen|no available channels? for model|无可用渠道|模型不存在`),
		final, true, ReasonRejected, stepModel, unknownModel, nameModel},
	{[]int{400, 403, 404, 410, 422, 500},
		lazy.Regexp(`model_not_available|deploymentnotfound|endpoint_not_running|deployment .{0,60}does not exist|(invalid|unknown|unsupported|no such|no) model\b|models?\b.{0,120}(not found|not exist|n't exist|not available|no longer|not a valid|unknown|is not loaded)|not a valid model|try pulling|model: [\w./:-]+$|no endpoints (found|available)|no allowed providers|no models loaded|model is unloaded|on-demand throughput`), final, true, ReasonRejected, stepModel, unknownModel, nameModel},
	{[]int{400}, lazy.Regexp(`http request (was sent )?to (an )?https`), final, true, ReasonRejected, stepReached,
		"the model's server speaks https", "set OPENAI_BASE_URL to https://..."},
	{[]int{400, 403, 422}, lazy.Regexp(
		`content management|content[_ ]?(filter|policy)|responsible ?ai|safety|moderation`), final, true,
		ReasonRejected, stepNone,
		"the model's server refuses what the request says", "its own rules for contents decide that"},
	{[]int{400, 404, 413, 422, 500}, contextWords, final, true, ReasonRejected, stepContext,
		"the prompt does not fit into the model's context",
		"give the server a larger one (Ollama: OLLAMA_CONTEXT_LENGTH, vLLM: --max-model-len, llama.cpp: -c), or name a model that has it"},
	{[]int{400, 416, 422}, limitWord, final, true, ReasonRejected, stepLimit,
		"the model's server refuses the limit of the reply", "set --max-completion-tokens to what it accepts"},
	{[]int{403}, nil, final, true, ReasonRejected, stepKey, "the model's server refused access",
		"the key in OPENAI_API_KEY needs the right to ask this model"},
	{[]int{300, 301, 302, 303, 307, 308}, nil, final, true, ReasonRejected, stepReached,
		"the model's server is elsewhere", ""},
	{nil, lazy.Regexp(`unexpected endpoint`), final, true, ReasonRejected, stepReached,
		"nothing is served at the address of the model's server", ""},
	{[]int{404, 405, 410}, nil, final, true, ReasonRejected, stepReached,
		"nothing is served at the address of the model's server", ""},
	{nil, lazy.Regexp(`overloaded|over capacity|capacity_exceeded|at capacity|no healthy upstream|server is busy|no capacity`), transient, true, ReasonServerError, stepNone, "the model's server is overloaded", ""},
	{[]int{429}, nil, transient, true, ReasonRateLimited, stepNone, "the model's server limits the rate", ""},
	{[]int{498, 503, 529}, nil, transient, true, ReasonServerError, stepNone, "the model's server is not available",
		""},
	{[]int{408, 409, 425}, nil, transient, false, ReasonServerError, stepNone, "the model's server failed", ""},
	{[]int{501, 505}, nil, final, true, ReasonServerError, stepNone, "the model's server cannot do what was asked", ""},
}

// judgementOf returns the judgement of a refusal.
func judgementOf(r *refusal) judgement {
	for _, j := range judgements {
		byParam := j.step == stepModel && r.param == "model"
		if (j.statuses == nil || slices.Contains(j.statuses, r.status)) &&
			(j.words == nil || byParam || j.words().MatchString(r.words)) {
			return j
		}
	}
	if r.status >= http.StatusInternalServerError {
		return judgement{outcome: transient, reason: ReasonServerError, says: "the model's server failed"}
	}
	return judgement{outcome: final, free: true, reason: ReasonRejected, says: "the model's server refused the request"}
}
