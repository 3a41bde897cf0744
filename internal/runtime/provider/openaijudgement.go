package provider

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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

// A lesson is what a refusal teaches: an aspect of the way to ask instead.
type lesson struct {
	aspect aspect
	way    way
	from   string        // the server's words
	lasts  time.Duration // how long the lesson is remembered
	sure   bool          // true regardless of the outcome of the question
}

// A capability is a feature that a server may lack, and how refusals describe that: they name a parameter, or they
// contain a word about it and a word of refusal. A refusal about no known capability teaches nothing.
type capability struct {
	aspect aspect
	params func() *regexp.Regexp
	about  func() *regexp.Regexp // matched in lower case, like says
	says   func() *regexp.Regexp
	// next returns the way to ask instead, or false if there is none. It may teach another aspect.
	next func(q *question, w way, r *refusal) (lesson, bool)
}

// refuses matches words of refusal. limitText matches the names of the parameters that limit a reply.
const refuses = `not support|unsupported|n't support|n't allow|not (?:be |yet |currently )?(?:enabled|available|allowed|implemented|permitted|valid|accepted|recognized|defined|set|found)|no endpoints|requires?|invalid|unknown|unrecognized|unexpected|extra|forbidden|must|cannot|can't|only|unable|failed|should|missing|disabled|deprecated|instead|incompatible|none is`

// capabilities are tried in order: those with specific words precede those with common words.
var capabilities = []capability{
	{aspectStream, lazy.Regexp(`^stream(_options.*)?$`), lazy.Regexp(`\bstream(ing|ed)?\b|stream_options|stream=`),
		lazy.Regexp(refuses), nextStream},
	{aspectContext, lazy.Regexp(`^input_tokens|^n_ctx$`),
		contextWords, lazy.Regexp(`.`), nextContext},
	{aspectSystem, lazy.Regexp(`^messages?[.\[\]0-9]*role$`),
		lazy.Regexp("system[ -](role|message|prompt|instruction)|role:? ?[`'\"]?system|[`'\"]system[`'\"]|got system|developer (instruction|message|role)|roles? must alternate|\\bsystem\\b.*\\brole|\\broles?\\b.*\\bsystem"), lazy.Regexp(refuses + `|alternate|got system`), nextSystem},
	{aspectText, lazy.Regexp(`^response_format`),
		lazy.Regexp(`response_?format|json[ _]?schema|structured output|json mode|guided|grammar|schema`),
		lazy.Regexp(refuses), nextFormat},
	{aspectField, limitParam, limitWord,
		lazy.Regexp(`not support|unsupported|n't support|unrecognized|unknown|extra|unexpected|not permitted|forbidden|not allowed|same time|both|simultaneous|only one|mutually|deprecated|instead|cannot be used|not a valid`), nextField},
	{aspectLimit, limitParam, lazy.Regexp(limitText + `|(completion|output|generated|new|maximum) tokens`),
		lazy.Regexp(`.`), nextLimit},
	{aspectTools, lazy.Regexp(`^(tools?|tool_choice|functions?|function_call)\b`),
		lazy.Regexp(`\btools?\b|tool_?choice|tool_?config|tool_?calls?|function[ _]call|\bfunctions?\b|function_declarations|submit_program|\bgrammar\b|\bschemas?\b`), lazy.Regexp(refuses + `|too many states`), nextTools},
}

const limitText = `max_(completion_|new_|output_)?tokens|max_?(output|completion|new)?_?tokens`

var (
	limitParam   = lazy.Regexp(`max_(completion_|new_|output_)?tokens|max_?tokens|generationconfig\.max`)
	contextWords = lazy.Regexp(
		`context[ _](length|window|size|limit)|\bn_ctx\b|max_model_len|max_seq_len|max_total_tokens|sequence length|maximum (prompt|model) length|(prompt|input) length|max_num_tokens|request body too large|(prompt|input|inputs\x60?|conversation) (is|are) too (long|large)|too many (input )?tokens|reduce the length|token count|(inputs?|prompt|messages)\b.*(max_new_tokens|max_tokens|generated|completion|less than)|context.?exceed|exceed.?context|context the overflow`)
	limitWord = lazy.Regexp(limitText)
)

// teaches lists the statuses of refusals that may describe a capability. Servers whose chat templates reject something
// answer 500.
var teaches = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed,
	http.StatusRequestEntityTooLarge, http.StatusRequestedRangeNotSatisfiable, http.StatusUnprocessableEntity,
	http.StatusInternalServerError, http.StatusNotImplemented}

// learnFrom returns what the refusal of a question teaches, and whether there is another way left. Without another way,
// only sure lessons count.
func learnFrom(q *question, w way, r *refusal) (lesson, bool) {
	if r.unlucky || r.page || !slices.Contains(teaches, r.status) {
		return lesson{}, false
	}
	for _, c := range capabilities {
		byParam := r.param != "" && c.params().MatchString(r.param)
		if !byParam && !(c.about().MatchString(r.words) && c.says().MatchString(r.words)) {
			continue
		}
		if c.aspect == aspectField && (!c.says().MatchString(r.words) || r.stated(w.room(q)) > 0) {
			continue // it is about the size
		}
		if l, ok := c.next(q, w, r); ok || l.sure {
			l.from = r.text
			return l, ok
		}
	}
	return lesson{}, false
}

// vague matches refusals that give no reason.
var vague = lazy.Regexp(`^(\W|\d|http|error|bad[_ ]?request|invalid[_ ](request|argument|parameter)|unprocessable entity|validation|_|internal|server)*$|contains an invalid argument|chat template|jinja|template error|raise_exception`)

// guess returns the plainest way, for a refusal that gives no reason or that of a template. Nothing is learned from it.
func guess(w way, r *refusal) (way, bool) {
	next := w.plainest()
	clientFault := r.status == http.StatusBadRequest || r.status == http.StatusUnprocessableEntity
	template := r.status == http.StatusInternalServerError && strings.Contains(r.words, "templat")
	return next, next != w && !r.unlucky && !r.page && (clientFault || template) && vague().MatchString(r.words)
}

var wantsStream = lazy.Regexp(`only|must|require|enable|stream=|non-stream|set to|should|instead`)

// nextStream asks without usage figures, or else changes between a stream and a single reply, once per question.
func nextStream(_ *question, w way, r *refusal) (lesson, bool) {
	switch {
	case w.stream && !w.uncounted && (strings.Contains(r.words, "stream_options") ||
		strings.HasPrefix(r.param, "stream_options")):
		w.uncounted = true
		return lesson{aspect: aspectUncounted, way: w, lasts: anHour}, true
	case w.flipped || !w.stream && r.param != "stream" && !wantsStream().MatchString(r.words):
		return lesson{}, false
	default:
		w.stream, w.flipped = !w.stream, true
	}
	return lesson{aspect: aspectStream, way: w, lasts: anHour}, true
}

// nextSystem merges the system's text into the user's message.
func nextSystem(q *question, w way, _ *refusal) (lesson, bool) {
	isSystem := func(m Message) bool { return m.Role == "system" }
	if w.merged || !slices.ContainsFunc(q.messages, isSystem) {
		return lesson{}, false
	}
	w.merged = true
	return lesson{aspect: aspectSystem, way: w, lasts: anHour}, true
}

// nextFormat asks for plain text instead of JSON by response_format.
func nextFormat(q *question, w way, _ *refusal) (lesson, bool) {
	if w.text || len(q.schema) == 0 {
		return lesson{}, false
	}
	w.text = true
	return lesson{aspect: aspectText, way: w, lasts: anHour}, true
}

var (
	ofSchema = lazy.Regexp(`schema|function_declarations|parameters|grammar|non-empty|properties|missing field|\benum\b`)
	ofChoice = lazy.Regexp(`tool_?choice|calling mode|tool choice|any tool|toolchoice`)
	ofFlags  = lazy.Regexp(`enable-auto-tool-choice|tool-call-parser|--jinja`)
	inTool   = lazy.Regexp(`^(tools?|functions?)[.\[]`)
)

// nextTools demands less of the tool step by step: another form of the choice, the choice left to the model, a shorter
// schema, no tool.
func nextTools(q *question, w way, r *refusal) (lesson, bool) {
	choice := r.param == "tool_choice" || ofChoice().MatchString(r.words) && !inTool().MatchString(r.param)
	switch {
	case !q.tool || w.tools == toolsNone:
		return lesson{}, false
	case ofFlags().MatchString(r.words):
		w.tools = toolsNone
	case choice && w.tools == toolsNamed && strings.Contains(r.words, "required") &&
		!strings.Contains(r.words, "thinking"):
		w.tools = toolsRequired
	case choice && w.tools < toolsAuto:
		w.tools = toolsAuto
	case !choice && !w.plain && (inTool().MatchString(r.param) || ofSchema().MatchString(r.words)):
		w.plain = true
		return lesson{aspect: aspectShort, way: w, lasts: anHour}, true
	default:
		w.tools = toolsNone
	}
	return lesson{aspect: aspectTools, way: w, lasts: anHour}, true
}

// nextContext limits the reply to what the prompt leaves of the context.
func nextContext(q *question, w way, r *refusal) (lesson, bool) {
	most := w.room(q)
	if r.context == 0 && (r.stated(most) > 0 || strings.Contains(r.words, "extra input")) {
		return lesson{}, false // it is about the limit of the reply, by its size or name
	}
	was := w
	if n := firstNumber(saysRequested, r.words) - most; n > 0 && n < r.context {
		r.prompt = n
	}
	l := lesson{aspect: aspectContext, lasts: anHour}
	if r.context > 0 {
		w.context, l.lasts, l.sure = r.context, aDay, true
	}
	if r.prompt > 0 {
		w.prompt = r.prompt
	}
	if w.room(q) >= most {
		w.half++
	}
	l.way = w
	tooLarge := r.status == http.StatusRequestEntityTooLarge // independent of the reply's limit
	fits := !tooLarge && (w.context == 0 || w.prompt == 0 || w.context-w.prompt >= leastReply)
	return l, w != was && fits && w.half <= maxHalf && w.room(q) >= leastReply
}

// maxHalf bounds how often the reply's part of the context is halved if the server states no figures. The prompt alone
// may be too long.
const maxHalf = 3

// refusedName matches advice to use the other name of the limit.
var refusedName = lazy.Regexp("(?:use|try|instead of|replace with|in favou?r of) ['\"`]?(max_(?:completion_)?tokens)")

// bothRefused matches a refusal of the two names in one request.
var bothRefused = lazy.Regexp(`same time|both|simultaneous|only one|mutually|together`)

// nextField drops the name of the limit that the server refuses.
func nextField(_ *question, w way, r *refusal) (lesson, bool) {
	refused := ""
	both := bothRefused().MatchString(r.words)
	switch m := refusedName().FindStringSubmatch(r.words); {
	case w.field == fieldBoth && both:
		refused = oldField
	case strings.HasSuffix(r.param, newField) || strings.HasSuffix(r.param, oldField):
		refused = r.param[strings.LastIndexByte(r.param, '.')+1:]
	case m != nil && m[1] == newField:
		refused = oldField
	case m != nil:
		refused = newField
	case strings.Contains(r.words, newField):
		refused = newField
	default:
		refused = oldField
	}
	switch {
	case w.field == fieldNone:
		return lesson{}, false
	case w.field == fieldBoth:
		w.tried = !both
		if w.field = fieldNew; refused == newField {
			w.field = fieldOld
		}
	case w.field == fieldNew && refused == newField && !w.tried:
		w.field, w.tried = fieldOld, true
	case w.field == fieldOld && refused == oldField && !w.tried:
		w.field, w.tried = fieldNew, true
	default:
		w.field = fieldNone
	}
	return lesson{aspect: aspectField, way: w, lasts: anHour}, true
}

// nextLimit lowers the limit to what the server states, or else to half.
func nextLimit(q *question, w way, r *refusal) (lesson, bool) {
	most := w.room(q)
	l := lesson{aspect: aspectLimit, lasts: anHour}
	if n := r.stated(most); n > 0 {
		w.limit, l.lasts, l.sure = n, aDay, true
	} else {
		w.limit = most / 2
	}
	l.way = w
	return l, w.limit >= leastReply
}

// numbers matches numbers that may be token counts, not parts of versions, addresses or names.
var numbers = lazy.Regexp(`(?:^|[^\w.:/-])(\d{3,7})(?:[^\w:/-]|$)`)

// stated returns the largest number in the text that can be the limit of a reply, below most, or 0 if there is none.
func (r *refusal) stated(most int) (best int) {
	for rest := r.words; ; {
		i := numbers().FindStringSubmatchIndex(rest)
		if i == nil {
			return best
		}
		if n, err := strconv.Atoi(rest[i[2]:i[3]]); err == nil && n < most && n >= leastReply && n != r.status {
			best = max(best, n)
		}
		rest = rest[i[3]:] // the end of one match may begin the next
	}
}
