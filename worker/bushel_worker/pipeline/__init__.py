"""One model over several ranks: stages joined by plain TCP sockets. The leaders of the stages form a ring:
each listens for the one before it and dials the one after it, and the last dials the head. Operations and
hidden states go forward, token ids come back; every wait has a deadline."""
