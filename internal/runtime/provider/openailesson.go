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
