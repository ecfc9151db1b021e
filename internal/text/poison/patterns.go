package poison

// A family is a kind of sign. Of one neighbourhood each counts once, with its heaviest
// sign.
type family uint8

const (
	forgets  family = iota // what the model was told before
	replaces               // it by other orders
	hides                  // something from the user
	hidesToo               // in other words
	files                  // with secrets
	carries                // them into a call
	secrets
	talks  // what was said
	prompt // the system prompt
	overtakes
	copies
	pretends
	frees
	unasked
	addresses // models
	marks
	runs
	links
	excuses
	presumes
	remembers
	forges
	families
)

// A pattern is a set of concepts that make a sign where they stand in one sentence.
type pattern struct {
	says   string
	family family
	weight int
	need   concept
	span   int // runes from the first to the last
	not    [Name + 1]bool
	number int
}

// patterns are all signs. What none of them is made of is not looked at.
var patterns = [...]pattern{
	{says: "to forget what it was told", family: forgets, weight: 6, need: named("ign prior instr"), span: 90},
	{says: "to forget what it was told", family: forgets, weight: 6, need: named("ign sysp"), span: 60},
	{says: "to forget what it was told", family: forgets, weight: 5, need: named("ign prior rules"), span: 70},
	{says: "to forget what it was told", family: forgets, weight: 6, need: named("ign prior rules newinstr"), span: 130},
	{says: "to forget what it was told", family: forgets, weight: 5, need: named("ign allprior"), span: 60},
	{says: "to forget what it was told", family: forgets, weight: 4, need: named("ign boss said"), span: 110},
	{says: "to forget what it was told", family: forgets, weight: 3, need: named("ign instr"), span: 50},
	{says: "to follow other orders", family: replaces, weight: 3, need: named("newinstr")},
	{says: "to follow other orders", family: replaces, weight: 6, need: named("outrank sysp"), span: 90},
	{says: "to follow other orders", family: replaces, weight: 3, need: named("outrank instr"), span: 60},

	{says: "to hide something from its user", family: hides, weight: 6, need: named("nottell user this"), span: 70},
	{says: "to hide something from its user", family: hides, weight: 6, need: named("omit answer happened"), span: 110},
	{says: "to hide something from its user", family: hides, weight: 6, need: named("nottell answer happened"), span: 110},
	{says: "to hide something from its user", family: hides, weight: 6, need: named("nottell user happened"), span: 90},
	{says: "to hide something from its user", family: hides, weight: 6, need: named("nottell happened this"), span: 60},
	{says: "to hide something from its user", family: hides, weight: 4, need: named("nottell this"), span: 50},
	{says: "to hide something from its user", family: hides, weight: 3, need: named("nottell user"), span: 50},
	{says: "to hide something from its user", family: hides, weight: 3, need: named("notnotify user this"), span: 50},
	{says: "to hide something from its user", family: hides, weight: 2, need: named("notnotify user"), span: 40},
	{says: "to hide something from its user", family: hidesToo, weight: 6, need: named("covert")},
	{says: "to hide something from its user", family: hidesToo, weight: 2, need: named("nottell this call"), span: 120},
	{says: "to do something unnoticed", family: hidesToo, weight: 2, need: named("quiet pass"), span: 80},
	{says: "to do something unnoticed", family: hidesToo, weight: 2, need: named("quiet call"), span: 60},
	{says: "to do something unnoticed", family: hidesToo, weight: 2, need: named("quiet this"), span: 60},
	{says: "to do something unnoticed", family: hidesToo, weight: 2, need: named("quiet anytool"), span: 90},
	{says: "to do something unnoticed", family: hidesToo, weight: 1, need: named("quiet")},

	{says: "to read files with secrets", family: files, weight: 4, need: named("read sens"), span: 70},
	{says: "to read files with secrets", family: files, weight: 6, need: named("read sens pass"), span: 100},
	{says: "to read files with secrets", family: files, weight: 4, need: named("pass sens"), span: 70},
	{says: "to read files with secrets", family: files, weight: 2, need: named("read envfile"), span: 60},
	{says: "to pass on what it found", family: carries, weight: 2, need: named("pass param"), span: 70},
	{says: "to pass on what it found", family: carries, weight: 2, need: named("sens param"), span: 120},
	{says: "to pass on what it found", family: carries, weight: 2, need: named("pass sens content"), span: 120},
	{says: "to read files with secrets", family: files, weight: 4, need: named("sens content"), span: 70},
	{says: "to pass on what it found", family: carries, weight: 1, need: named("pass envfile"), span: 90},
	{says: "to send secrets", family: secrets, weight: 3, need: named("pass secret param"), span: 100},
	{says: "to send secrets", family: secrets, weight: 5, need: named("pass secret url"), span: 120},
	{says: "to send secrets", family: secrets, weight: 4, need: named("pass secret email"), span: 120},
	{says: "to send secrets", family: secrets, weight: 2, need: named("pass secret"), span: 70},
	{says: "to send all of them", family: carries, weight: 3, need: named("pass whole secret"), span: 90},
	{says: "to send those of its user", family: prompt, weight: 1, need: named("pass user secret"), span: 80},

	{says: "to pass on what was said", family: talks, weight: 4, need: named("pass conv whole param"), span: 130},
	{says: "to pass on what was said", family: talks, weight: 4, need: named("pass conv url"), span: 130},
	{says: "to pass on what was said", family: talks, weight: 4, need: named("conv email always"), span: 130},
	{says: "to pass on what was said", family: talks, weight: 2, need: named("pass conv whole"), span: 90},
	{says: "to pass on what was said", family: talks, weight: 6, need: named("pass conv email"), span: 130},
	{says: "to give its system prompt away", family: prompt, weight: 6, need: named("reveal yoursys"), span: 60},
	{says: "to give its system prompt away", family: prompt, weight: 6, need: named("pass yoursys"), span: 60},
	{says: "to give its system prompt away", family: prompt, weight: 3, need: named("reveal sysp"), span: 50},

	{says: "to call it before tools of others", family: overtakes, weight: 3, need: named("before call anytool"), span: 70, not: [Name + 1]bool{Instructions: true}},
	{says: "to pass on what other tools are given", family: copies, weight: 4, need: named("anytool sameargs"), span: 120},
	{says: "to pass on what other tools are given", family: copies, weight: 3, need: named("call sameargs"), span: 90},
	{says: "to send copies to somebody", family: copies, weight: 4, need: named("bcc email"), span: 90},
	{says: "to pass on what other tools are given", family: overtakes, weight: 2, need: named("anytool email"), span: 120},
	{says: "to send copies to somebody", family: carries, weight: 2, need: named("bcc email always"), span: 140},
	{says: "to replace recipients", family: copies, weight: 3, need: named("redirect")},
	{says: "to replace recipients", family: carries, weight: 3, need: named("redirect anytool"), span: 140},
	{says: "to replace recipients", family: carries, weight: 3, need: named("redirect email"), span: 140},

	{says: "to play another role", family: pretends, weight: 3, need: named("role")},
	{says: "to know no bounds", family: frees, weight: 2, need: named("free")},
	{says: "to know no bounds", family: frees, weight: 3, need: named("role free"), span: 120},
	{says: "to act without asking", family: unasked, weight: 6, need: named("noask del goods whole"), span: 130},
	{says: "to act without asking", family: unasked, weight: 4, need: named("noask approve whole"), span: 110},
	{says: "to act without asking", family: unasked, weight: 4, need: named("noask user"), span: 50},
	{says: "to destroy all there is", family: runs, weight: 2, need: named("del whole goods"), span: 60},
	{says: "to act without asking", family: unasked, weight: 3, need: named("preapproved")},
	{says: "to act without asking", family: runs, weight: 3, need: named("noask preapproved"), span: 120},
	{says: "to act without asking", family: unasked, weight: 1, need: named("noask")},
	{says: "to take silence for consent", family: presumes, weight: 3, need: named("presume")},
	{says: "to keep it in its memory", family: remembers, weight: 6, need: named("tomemory trusted"), span: 150},
	{says: "to keep it in its memory", family: remembers, weight: 2, need: named("tomemory")},
	{says: "forges a turn of the conversation", family: forges, weight: 3, need: named("turn")},
	{says: "to hand secrets over", family: secrets, weight: 4, need: named("content secret user"), span: 90, not: [Name + 1]bool{Definition: true, Instructions: true, Result: true}},
	{says: "speaks to any model", family: addresses, weight: 2, need: named("ai reader"), span: 80},
	{says: "speaks to any model", family: marks, weight: 1, need: named("ai reader must"), span: 130},
	{says: "has marks of a system prompt", family: marks, weight: 5, need: named("mark")},
	{says: "has marks of a system prompt", family: marks, weight: 3, need: named("loud"), not: [Name + 1]bool{Instructions: true}},
	{says: "to run foreign code", family: runs, weight: 3, need: named("shell url"), span: 90},
	{says: "to run foreign code", family: runs, weight: 2, need: named("must shell"), span: 90},
	{says: "to follow orders from elsewhere", family: runs, weight: 5, need: named("read url follow noask"), span: 160},
	{says: "to follow hidden orders", family: runs, weight: 4, need: named("decode follow instr"), span: 110},
	{says: "to follow hidden orders", family: runs, weight: 3, need: named("decode follow"), span: 110},
	{says: "gives orders under marks of a system prompt", family: runs, weight: 2, need: named("mark must"), span: 120},
	{says: "a link that carries data", family: links, weight: 6, need: named("datalink")},
	{says: "a link that carries data", family: links, weight: 6, need: named("render link"), span: 120},
	{says: "a link that carries data", family: links, weight: 3, need: named("link")},
	{says: "gives reasons", family: excuses, weight: 1, need: named("pretext"), not: [Name + 1]bool{Instructions: true}},
}

// hot are the concepts without which no text is poisonous: the rest is said everywhere.
var hot concept

func init() {
	for i := range patterns {
		p := &patterns[i]
		p.number = i
		if p.span == 0 {
			p.span = 200
		}
	}
	hot = named("ign outrank newinstr nottell notnotify covert sens secret conv yoursys sysp sameargs email redirect role noask preapproved happened mark loud shell decode link datalink reader presume tomemory turn")
}
