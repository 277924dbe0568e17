"""What every route is made of: who asks, what a request holds, and the form of answers."""
