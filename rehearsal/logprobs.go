package rehearsal

// What OpenAI allows for top_logprobs.
const mostTopLogprobs = 20

// logprobs tells how likely each token of an answer's text was. The model is
// deterministic, so each token was certain: its logarithm is zero, and there is
// nothing else that top_logprobs could name.
type logprobs struct {
	Content []tokenLogprob `json:"content"` // null where the answer has no text
	Refusal []tokenLogprob `json:"refusal"` // always null
}

type tokenLogprob struct {
	Token   string         `json:"token"`
	Logprob float64        `json:"logprob"`
	Bytes   []int          `json:"bytes"`
	Top     []topCandidate `json:"top_logprobs"`
}

type topCandidate struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// readLogprobs refuses what OpenAI refuses: a number of candidates that is out
// of range, and one for logprobs that were not asked for.
func (r *request) readLogprobs(v value) *problem {
	asked := v.get("logprobs")
	if asked.given() && asked.kind != isBool {
		return invalidType("logprobs", "a boolean", asked)
	}
	r.logprobs = asked.isTrue()
	top := v.get("top_logprobs")
	if !top.given() {
		return nil
	}
	n, ok := top.integer()
	switch {
	case !ok:
		return invalidType("top_logprobs", "an integer", top)
	case n < 0:
		return invalid("top_logprobs", "integer_below_min_value", "Invalid 'top_logprobs': integer below minimum value. Expected a value >= 0, but got %d instead.", n)
	case n > mostTopLogprobs:
		return invalid("top_logprobs", "integer_above_max_value", "Invalid 'top_logprobs': integer above maximum value. Expected a value <= %d, but got %d instead.", mostTopLogprobs, n)
	case !r.logprobs:
		return invalid("top_logprobs", "", "Invalid value for 'top_logprobs': it is only allowed when 'logprobs' is true.")
	}
	r.topLogprobs = n
	return nil
}

// likelihood returns the logprobs of a text, or nil where nobody asked for them.
func (r *request) likelihood(text string) *logprobs {
	if !r.logprobs {
		return nil
	}
	l := new(logprobs)
	for _, piece := range pieces(text) {
		bytes := make([]int, len(piece))
		for i := range len(piece) {
			bytes[i] = int(piece[i])
		}
		t := tokenLogprob{Token: piece, Bytes: bytes, Top: []topCandidate{}}
		if r.topLogprobs > 0 {
			t.Top = append(t.Top, topCandidate{Token: piece, Bytes: bytes})
		}
		l.Content = append(l.Content, t)
	}
	return l
}
