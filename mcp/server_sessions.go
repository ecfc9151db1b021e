package mcp

// A crowd knows of whom there are how many sessions, so that it is found at once who has
// most. Its zero value is empty.
type crowd struct {
	of    map[string]map[*httpSession]struct{} // by owner
	sized map[int]map[string]struct{}          // owners, by how many sessions they have
	most  int                                  // that any has
}

// add adds a session of an owner.
func (c *crowd) add(h *httpSession) {
	if c.of == nil {
		c.of, c.sized = map[string]map[*httpSession]struct{}{}, map[int]map[string]struct{}{}
	}
	if c.of[h.owner] == nil {
		c.of[h.owner] = map[*httpSession]struct{}{}
	}
	before := len(c.of[h.owner])
	c.of[h.owner][h] = struct{}{}
	c.move(h.owner, before)
}

// remove removes a session that was added.
func (c *crowd) remove(h *httpSession) {
	before := len(c.of[h.owner])
	delete(c.of[h.owner], h)
	c.move(h.owner, before)
	if len(c.of[h.owner]) == 0 {
		delete(c.of, h.owner)
	}
}

// move notes that an owner has one session more or less than before.
func (c *crowd) move(owner string, before int) {
	if delete(c.sized[before], owner); len(c.sized[before]) == 0 {
		delete(c.sized, before)
	}
	if n := len(c.of[owner]); n > 0 {
		if c.sized[n] == nil {
			c.sized[n] = map[string]struct{}{}
		}
		c.sized[n][owner] = struct{}{}
		c.most = max(c.most, n)
	}
	for c.most > 0 && c.sized[c.most] == nil {
		c.most--
	}
}

// yields returns a session that gives way to one of an owner: one that nobody uses now,
// of whoever has most, so that no owner takes the room of all others. It is nil where
// nobody has more than this one would.
func (c *crowd) yields(owner string) *httpSession {
	for n := c.most; n > len(c.of[owner])+1; n-- {
		for other := range c.sized[n] {
			for h := range c.of[other] {
				if !h.used() {
					return h
				}
			}
		}
	}
	return nil
}
