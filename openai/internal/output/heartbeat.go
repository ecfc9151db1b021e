package output

import "time"

// beat gives a sign of life where there was silence for long enough. It finds
// that out when its time has come: setting the timer anew with each event would
// cost more than the event.
func (o *Output) beat() {
	o.mu.Lock()
	defer o.mu.Unlock()
	wait := o.form.Heartbeat
	if silent := time.Since(o.sent); silent < o.form.Heartbeat {
		wait -= silent
	} else {
		o.write(nil, "", o.form.Alive)
		o.flushLocked()
	}
	if !o.closed && o.err == nil {
		o.timer.Reset(wait)
	}
}
