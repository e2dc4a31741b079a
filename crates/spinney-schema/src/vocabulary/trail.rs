//! Where in a document a node is, while it is walked.

use std::rc::Rc;

use spinney_core::Path;

/// A node's way from the root, shared between those below.
#[derive(Debug)]
pub(crate) struct Trail {
    above: Option<Rc<Trail>>,
    step: Step,
    /// Whether it leads through a list, whose positions do not last.
    pub in_list: bool,
}

#[derive(Debug)]
enum Step {
    Root,
    Key(String),
    Element(u64),
}

/// Without recursion, however deep the document is.
impl Drop for Trail {
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(mut trail) = above.and_then(Rc::into_inner) {
            above = trail.above.take();
        }
    }
}

impl Trail {
    /// That of the root.
    pub fn root() -> Rc<Trail> {
        Rc::new(Trail { above: None, step: Step::Root, in_list: false })
    }

    /// That of a member.
    pub fn member(self: &Rc<Trail>, key: String) -> Rc<Trail> {
        let above = Some(Rc::clone(self));
        Rc::new(Trail { above, step: Step::Key(key), in_list: self.in_list })
    }

    /// That of an element.
    pub fn element(self: &Rc<Trail>, position: u64) -> Rc<Trail> {
        Rc::new(Trail {
            above: Some(Rc::clone(self)),
            step: Step::Element(position),
            in_list: true,
        })
    }

    /// That of the container; of the root, its own.
    pub fn above(&self) -> &Trail {
        self.above.as_deref().unwrap_or(self)
    }

    /// The key of a member.
    pub fn key(&self) -> Option<&str> {
        match &self.step {
            Step::Key(key) => Some(key),
            Step::Root | Step::Element(_) => None,
        }
    }

    /// As a path.
    pub fn path(&self) -> Path {
        let mut trails = vec![self];
        while let Some(above) = &trails[trails.len() - 1].above {
            trails.push(above);
        }
        let mut path = Path::root();
        for trail in trails.iter().rev() {
            match &trail.step {
                Step::Root => {}
                Step::Key(key) => path.push(key),
                Step::Element(position) => path.push(&position.to_string()),
            }
        }
        path
    }
}
