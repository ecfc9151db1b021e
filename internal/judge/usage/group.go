package usage

// A Group is callers whose spending counts together. Its [Book] keeps the sum: adding up ten
// thousand callers takes milliseconds, and somebody asks at each request.
type Group struct {
	in func(caller, name string) bool

	// The book's lock is held for what follows.
	members map[string]bool   // who was seen, and whether they are in it
	missing map[int64]Spent   // what is in no reading yet, by day
	names   map[string]string // as the last reading has them
	read    *Spending         // whose sums follow; nil for none
	today   Spent
	month   Spent
	stale   bool // somebody has joined or left
}

// NewGroup returns a group of those callers of whom in says so, by their IDs and by what rules
// call them; empty for nothing. It is for one book ([Book.Count]).
func NewGroup(in func(caller, name string) bool) *Group {
	return &Group{in: in, members: map[string]bool{}, missing: map[int64]Spent{}}
}

// Count makes these the groups of which the book keeps sums.
func (b *Book) Count(groups []*Group) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spending.groups = groups
	for _, g := range groups {
		g.recount(&b.spending)
	}
}

// Together returns what the callers of a group of the book have spent: of each what a
// [Spending] says, and what [Book.Unwritten] does beyond it.
func (b *Book) Together(s *Spending, g *Group) (today, month Spent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g.read != s {
		g.read, g.names, g.today, g.month = s, s.Names, Spent{}, Spent{}
		for caller, spent := range s.ThisMonth {
			if g.has(&b.spending, caller) {
				g.month.Add(spent)
				g.today.Add(s.Today[caller])
			}
		}
		if g.stale {
			g.recount(&b.spending)
		}
	}
	today, month = s.missing(func(day int64) Spent { return g.missing[day] })
	today.Add(g.today)
	month.Add(g.month)
	return today, month
}

// missing adds up what is in no reading yet of the day and of the month of this one: nothing is
// missing of days before yesterday.
func (s *Spending) missing(of func(day int64) Spent) (today, month Spent) {
	day := hour(s.Day) / 24
	today = of(day)
	month = today
	if yesterday := day - 1; yesterday >= hour(s.Month)/24 {
		month.Add(of(yesterday))
	}
	return today, month
}

// has reports whether a caller is in the group, and notes whether that has changed.
func (g *Group) has(s *spending, caller string) bool {
	name, ok := s.called[caller]
	if !ok {
		name = g.names[caller]
	}
	was, known := g.members[caller]
	is := g.in(caller, name)
	g.members[caller], g.stale = is, g.stale || known && was != is
	return is
}

// add counts what was added to what is missing of a caller.
func (g *Group) add(s *spending, of spender, more Spent) {
	if g.has(s, of.caller) && !g.stale {
		sum := g.missing[of.day]
		sum.Add(more)
		if g.missing[of.day] = sum; sum == (Spent{}) {
			delete(g.missing, of.day)
		}
	}
	g.settle(s)
}

// named looks again at a caller who got another name.
func (g *Group) named(s *spending, caller string) {
	if _, known := g.members[caller]; known {
		g.has(s, caller)
		g.settle(s)
	}
}

// settle counts anew where somebody has joined or left.
func (g *Group) settle(s *spending) {
	if g.stale {
		g.read = nil
		g.recount(s)
	}
}

// recount adds up what is missing.
func (g *Group) recount(s *spending) {
	clear(g.missing)
	for of, more := range s.missing {
		if g.has(s, of.caller) {
			sum := g.missing[of.day]
			sum.Add(more)
			g.missing[of.day] = sum
		}
	}
	g.stale = false
}
