package messages

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/openai/model"
)

// tooLong is how the API begins to say that a request is longer than its model reads. Clients
// such as Claude Code make their history shorter by these words alone.
const tooLong = "prompt is too long"

// noRoom is how the API begins to say that a request is short enough, but leaves no room for
// as long an answer as it allows. Claude Code asks for a shorter one by these words and the
// figures behind them; its history it would make shorter in vain.
const noRoom = "input length and `max_tokens` exceed context limit"

// noRooms are how servers of models say that: vLLM, in its versions, SGLang, and OpenRouter and
// those who copied OpenAI's API of old.
var noRooms = []*regexp.Regexp{
	regexp.MustCompile(`is too large: (?P<out>\d+)\. This model's maximum context length is (?P<reads>\d+) tokens and your request has (?P<in>\d+) input tokens`),
	regexp.MustCompile(`context length is (?P<reads>\d+) tokens\. However, you requested (?P<out>\d+) output tokens and your prompt contains (?:at least )?(?P<in>\d+) input tokens`),
	regexp.MustCompile(`passed (?P<in>\d+) input tokens and requested (?P<out>\d+) output tokens\. However, the model's context length is only (?P<reads>\d+) tokens`),
	regexp.MustCompile(`context length of (?P<reads>\d+) tokens\. You requested a total of \d+ tokens: (?P<in>\d+) tokens from the input messages and (?P<out>\d+) tokens for the completion`),
	regexp.MustCompile(`context length is (?P<reads>\d+) tokens\. However, you requested (?:about )?(?P<all>\d+) tokens \([^()]*, (?P<out>\d+) in the (?:completion|output)\)`),
}

// lengths returns how long a request is, how long an answer it allows and how much the model
// reads of both, where an error says all of them; zeros elsewhere.
func lengths(said string) (in, out, reads int) {
	all := 0 // of both, where the parts of a request are counted each
	members := map[string]*int{"in": &in, "out": &out, "reads": &reads, "all": &all}
	for _, form := range noRooms {
		found := form.FindStringSubmatch(said)
		for i, name := range form.SubexpNames() {
			if to := members[name]; to != nil && found != nil {
				n, err := strconv.Atoi(found[i])
				if err != nil || n > 1<<30 {
					return 0, 0, 0
				}
				*to = n
			}
		}
		switch {
		case found == nil:
		case all > 0:
			return all - out, out, reads
		default:
			return in, out, reads
		}
	}
	return 0, 0, 0
}

// badPicture is how the API begins to say that it cannot read a picture. Claude Code takes
// pictures out of its history by these words, which would be refused for ever.
const badPicture = "could not process image"

// inItsWords is what an error says, so that clients of the API know it. Where a request has
// no pictures, an error that speaks of one is about something else, such as a tool that makes
// some.
func inItsWords(e *model.Error, pictures bool) string {
	said := message(e)
	lower := strings.ToLower(said)
	switch {
	case e.TooLong() && !strings.Contains(lower, tooLong):
		return overfull(said)
	case pictures && refusesPictures(e, lower) && !strings.Contains(lower, badPicture):
		return badPicture + ": " + said
	}
	return said
}

// overfull is what the API says of a request that is too long, by itself or together with its
// answer.
func overfull(said string) string {
	in, out, reads := lengths(said)
	switch {
	case in <= 0 || in >= reads:
		return tooLong + ": " + said
	case in+out > reads+1:
		return fmt.Sprintf("%s: %d + %d > %d: %s", noRoom, in, out, reads, said)
	case out > reads/2: // it was counted no further than to what is one too many, and the answer is most of that
		return said // a client that makes its history shorter would be none the wiser
	}
	return tooLong + ": " + said
}

// refusesPictures reports whether the model's API refused a request for a picture in it, as
// those of models without eyes do: each in words of its own.
func refusesPictures(e *model.Error, said string) bool {
	if e.Code != model.CodeUpstreamInvalid || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return false
	}
	for _, word := range []string{"image", "multimodal", "multi-modal"} {
		if strings.Contains(said, word) {
			return true
		}
	}
	return false
}
