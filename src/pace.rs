//! A shared pacer: at most so many a second.
