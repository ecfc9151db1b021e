package lint

import "strings"

// Most checks have one of few shapes: they look at each of something, or at one thing
// where it is there. Those shapes are here, and the rules say only what they look for.

// eachArgument makes a check of the arguments of a tool. What it says is about the
// argument where it names no other place.
func eachArgument(check func(*Tool, Param, Say)) func(*Tool, Say) {
	return func(t *Tool, say Say) {
		for _, p := range t.Params() {
			check(t, p, func(place At, format string, args ...any) {
				if place == here {
					place = at(p.Pointer)
				}
				say(place, format, args...)
			})
		}
	}
}

// configured makes a check of a server's configuration, where that is known.
func configured(check func(*Config, Say)) func(*Server, Say) {
	return func(s *Server, say Say) {
		if s.Config != nil {
			check(s.Config, say)
		}
	}
}

// answered makes a check of what came of one single request, where it was sent.
func answered(ask string, check func(Answer, Say)) func(*Server, *Live, Say) {
	return func(_ *Server, l *Live, say Say) {
		if a, ok := l.Answers[ask]; ok {
			check(a, say)
		}
	}
}

// onWeb makes a check of a server over HTTP.
func onWeb(check func(*Live, *Web, Say)) func(*Server, *Live, Say) {
	return func(_ *Server, l *Live, say Say) {
		if l.Web != nil {
			check(l, l.Web, say)
		}
	}
}

// withMetadata makes a check of what a server over HTTP says about its authorization,
// where it wants one.
func withMetadata(check func(*Web, *Metadata, Say)) func(*Server, *Live, Say) {
	return onWeb(func(_ *Live, w *Web, say Say) {
		if w.Metadata != nil {
			check(w, w.Metadata, say)
		}
	})
}

// eachProbe makes a check of the calls of one kind.
func eachProbe(probe CallProbe, check func(Called, Say)) func(*Server, *Live, Say) {
	return func(_ *Server, l *Live, say Say) {
		for _, c := range l.Calls {
			if c.Probe == probe {
				check(c, say)
			}
		}
	}
}

// eachValid makes a check of the results of calls that the schema allows. It says one
// thing about a tool.
func eachValid(check func(Called, *result, Say)) func(*Server, *Live, Say) {
	return oncePerTool(func(c Called, say Say) {
		if c.Probe == CallValid && c.Result != nil {
			check(c, readResult(c.Result), say)
		}
	})
}

// eachFailure makes a check of the texts of calls that failed. It says one thing about a
// tool.
func eachFailure(check func(Called, string, Say)) func(*Server, *Live, Say) {
	return oncePerTool(func(c Called, say Say) {
		switch {
		case c.failed():
			check(c, c.Message, say)
		case c.Result != nil && isError(c.Result):
			check(c, strings.Join(readResult(c.Result).texts, "\n"), say)
		}
	})
}

// oncePerTool makes a check of all calls, until it has said something about their tool.
func oncePerTool(check func(Called, Say)) func(*Server, *Live, Say) {
	return func(_ *Server, l *Live, say Say) {
		told := map[*Tool]bool{}
		for _, c := range l.Calls {
			if told[c.Tool] {
				continue
			}
			check(c, func(at At, format string, args ...any) {
				told[c.Tool] = true
				say(at, format, args...)
			})
		}
	}
}
